"""Laws that hold for every structure, searched by hypothesis."""

from __future__ import annotations

import itertools
import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import kl_divergence
from torch.testing import assert_close

from tests.derivatives import gradients
from tests.structures.registry import over
from tests.structures.structure import BaseExample, Structure, seeded

data = st.data()


def inside(example: BaseExample) -> Tensor:
    """Which steps lie within the lengths: bool [*B, T]."""
    num_steps = example.crf().event_shape[0]
    return torch.arange(num_steps) < example.lengths[..., None]


@over()
@given(data)
def test_a_batch_equals_its_loop(structure: Structure, data):
    example = data.draw(structure.any_example([(5,), (2, 3)]))
    batch = example.crf()
    names = [name for name in structure.quantities if name.endswith("marginals")]
    names += ["log_partition", "entropy", "renyi_2"]
    asks = {name: structure.quantities[name] for name in names}
    answers = {name: ask(batch) for name, ask in asks.items()}
    argmax, best = batch.argmax, batch.topk(3).paths
    for index in itertools.product(*map(range, batch.batch_shape)):
        single = example.at(index).crf()
        for name, ask in asks.items():
            assert_close(answers[name][index], ask(single), msg=name)
        assert torch.equal(argmax[index], single.argmax)
        assert torch.equal(best[(slice(None), *index)], single.topk(3).paths)


@over()
@given(data, st.sampled_from([math.nan, math.inf, -math.inf, 1e30, -3.0]))
def test_padding_never_matters(structure: Structure, data, value: float):
    """Neither to values nor to gradients."""
    example = data.draw(structure.any_example())
    plain, padded = example.leaves(), example.with_padding(value).leaves()
    for quantity, ask in structure.quantities.items():
        expected, found = ask(plain.crf()), ask(padded.crf())
        assert_close(found, expected, msg=quantity)
        assert_close(gradients(found, padded), gradients(expected, plain), msg=quantity)


@over()
@given(data)
def test_entropy_lies_between_zero_and_that_of_the_uniform(structure: Structure, data):
    example = data.draw(structure.any_example())
    crf, slack = example.crf(), 1e-9
    entropies = [crf.renyi_entropy(order) for order in (0, 0.5, 1, 2, math.inf)]
    assert (entropies[0] <= example.oracle().log_num_outcomes + slack).all()
    for larger, smaller in itertools.pairwise(entropies):
        assert (larger >= smaller - slack).all()
    assert (entropies[-1] >= -slack).all()


@over()
@given(data)
def test_divergence_is_not_negative(structure: Structure, data):
    example = data.draw(structure.any_example())
    p, q = example.crf(), example.rescored().crf()
    assert (kl_divergence(p, q) >= -1e-9).all()
    assert (p.cross_entropy(q) >= p.entropy() - 1e-9).all()


@over()
@given(data)
def test_probabilities_of_all_paths_sum_to_one(structure: Structure, data):
    """Of all that differ within the length: beyond it, paths may differ without a difference."""
    example = data.draw(structure.any_example())
    crf = example.crf()
    listed = structure.all_paths(crf.event_shape)
    for index in itertools.product(*map(range, crf.batch_shape)):
        distinct = torch.where(inside(example)[index], listed, 0).unique(dim=0)
        single = example.at(index).crf()
        log_probs = single.log_prob(single.event_of(distinct))
        assert_close(log_probs.exp().sum(), torch.ones((), dtype=torch.float64))


# Bayes ---------------------------------------------------------------------------------------


@over()
@given(data, st.integers(0, 15))
def test_condition_is_bayes(structure: Structure, data, known: int):
    """p(z | observed) = p(z) / p(observed) where z agrees with what was observed, else 0."""
    example = data.draw(structure.any_example())
    crf = example.crf()
    num_steps = crf.event_shape[0]
    is_known = torch.tensor([bool(known >> t & 1) for t in range(num_steps)])
    observed = torch.where(is_known, crf.argmax, -1)
    posterior = crf.condition(observed)
    paths = structure.some_paths(crf)
    agrees = ((paths == observed) | (observed == -1) | ~inside(example)).all(-1)
    log_evidence = posterior.log_partition - crf.log_partition
    expected = (crf.log_prob(paths) - log_evidence).where(agrees, -torch.inf)
    assert_close(posterior.log_prob(paths), expected)
    assert_close(log_evidence, evidence(example, observed).log())


def evidence(example: BaseExample, observed: Tensor) -> Tensor:
    """[*B]: the probability of what was observed, by enumeration."""
    oracle = example.oracle()
    flat = observed.reshape(len(oracle.singles), -1)
    masses = []
    for single, seen in zip(oracle.singles, flat, strict=True):
        agrees = (single.paths == seen) | (seen == -1)
        masses.append(single.probs[agrees[:, : single.length].all(-1)].sum())
    return torch.stack(masses).reshape(oracle.batch_shape)


@over()
@given(data)
def test_nothing_observed_changes_nothing(structure: Structure, data):
    crf = data.draw(structure.any_example()).crf()
    same = crf.condition(torch.full(crf.event_shape[:1], -1))
    assert_close(same.mean, crf.mean)
    assert_close(same.log_partition, crf.log_partition)


@over()
@given(data)
def test_everything_observed_leaves_one_path(structure: Structure, data):
    crf = data.draw(structure.any_example()).crf()
    certain = crf.condition(crf.argmax)
    assert_close(certain.mean, crf.mode)
    assert_close(certain.entropy(), torch.zeros_like(certain.entropy()))
    assert_close(certain.log_partition - crf.log_partition, crf.log_prob(crf.argmax))


@over()
@given(data, st.integers(0, 1000))
def test_restrict_forbids(structure: Structure, data, seed: int):
    """The same as -inf in the scores of events; the mask means nothing beyond the lengths."""
    example = data.draw(structure.any_example())
    crf, (first, *others) = example.crf(), example.scores.values()
    coin = torch.rand(first.shape, generator=seeded(seed))
    padding = example.with_scores(torch.zeros_like(first), *others).with_padding(torch.nan)
    within = ~next(iter(padding.scores.values())).isnan()
    allowed = ((coin < 0.6) | crf.mode.bool()) & within
    by_hand = example.with_scores(first.masked_fill(~allowed & within, -torch.inf), *others)
    found, expected = crf.restrict(allowed), by_hand.crf()
    for quantity, ask in structure.quantities.items():
        assert_close(ask(found), ask(expected), msg=quantity)


@over()
@given(data)
def test_expand_equals_a_repeat(structure: Structure, data):
    crf = data.draw(structure.any_example([(), (3,)])).crf()
    grown, batch_shape = crf.expand((2, 3)), crf.batch_shape
    for quantity, ask in structure.quantities.items():
        if quantity.endswith("expectation"):
            continue
        once = ask(crf)
        lead = once.dim() - len(batch_shape) if quantity in ("topk", "log_prob") else 0
        shape = (*once.shape[:lead], 2, 3, *once.shape[lead + len(batch_shape) :])
        missing = (None,) * (2 - len(batch_shape))
        expected = once[(slice(None),) * lead + missing].expand(shape)
        assert_close(ask(grown), expected, msg=quantity)
