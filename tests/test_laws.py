"""Laws that hold for every chain, searched by hypothesis."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import kl_divergence
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import BATCH_SHAPES, FORMS, Example, fill_padding, forbid_some, random_example
from tests.quantities import QUANTITIES, rescored, some_paths


@st.composite
def chains(draw, batch_shapes: list = BATCH_SHAPES, forms: list = FORMS) -> Example:
    """Any example: batch shape, form, size, lengths, start and end, forbidden scores."""
    seed = draw(st.integers(0, 10_000))
    example = random_example(
        "law",
        draw(st.sampled_from(batch_shapes)),
        draw(st.sampled_from(forms)),
        num_steps=draw(st.integers(2, 4)),
        num_states=draw(st.integers(1, 3)),
        ends=draw(st.booleans()),
        scale=draw(st.sampled_from([0.1, 1.0, 10.0])),
        seed=seed,
    )
    return forbid_some(example, seed) if draw(st.booleans()) else example


def inside(example: Example) -> Tensor:
    """Which steps lie within the lengths: bool [*B, T]."""
    return torch.arange(example.emissions.shape[-2]) < example.lengths[..., None]


@given(chains(), st.integers(0, 3), st.floats(-50, 50))
def test_shifting_one_step_shifts_log_z_alone(example: Example, step: int, shift: float):
    step = min(step, example.emissions.shape[-2] - 1)
    emissions = example.emissions.clone()
    emissions[..., step, :] += shift
    before, after = example.crf(), replace(example, emissions=emissions).crf()
    expected = before.log_partition + shift * inside(example)[..., step]
    assert_close(after.log_partition, expected)
    assert_close(after.mean, before.mean)
    assert_close(after.edge_marginals, before.edge_marginals)
    assert_close(after.entropy(), before.entropy())
    assert_close(kl_divergence(before, after), torch.zeros_like(expected), atol=1e-10, rtol=0)


@given(chains(), st.randoms(use_true_random=False))
def test_permuting_states_permutes_everything(example: Example, random):
    num_states = example.emissions.shape[-1]
    order = torch.tensor(random.sample(range(num_states), num_states))
    permuted = {name: x[..., order] for name, x in example.scores.items()}
    permuted["transitions"] = permuted["transitions"][..., order, :]
    before, after = example.crf(), replace(example, **permuted).crf()
    assert_close(after.log_partition, before.log_partition)
    assert_close(after.entropy(), before.entropy())
    assert_close(after.mean, before.mean[..., order])
    assert_close(after.edge_marginals, before.edge_marginals[..., order, :][..., order])
    assert_close(after.mode, before.mode[..., order])
    assert_close(after.topk(3).log_probs, before.topk(3).log_probs)


def at(example: Example, index: tuple) -> Example:
    """One chain of a batch, on its own."""
    shared = example.transitions.dim() == 2
    return replace(
        example,
        emissions=example.emissions[index],
        transitions=example.transitions if shared else example.transitions[index],
        lengths=example.lengths[index],
        end=None if example.end is None else example.end[index],
    )


@given(chains(batch_shapes=[(5,), (2, 3)]))
def test_a_batch_equals_its_loop(example: Example):
    batch = example.crf()
    for index in itertools.product(*map(range, batch.batch_shape)):
        single = at(example, index).crf()
        assert_close(batch.log_partition[index], single.log_partition)
        assert_close(batch.mean[index], single.mean)
        assert_close(batch.edge_marginals[index], single.edge_marginals)
        assert_close(batch.entropy()[index], single.entropy())
        assert_close(batch.renyi_entropy(2)[index], single.renyi_entropy(2))
        assert torch.equal(batch.argmax[index], single.argmax)
        assert torch.equal(batch.topk(3).paths[(slice(None), *index)], single.topk(3).paths)


@given(chains(), st.sampled_from([math.nan, math.inf, -math.inf, 1e30, -3.0]))
def test_padding_never_matters(example: Example, value: float):
    """Neither to values nor to gradients."""
    plain, padded = example.leaves(), fill_padding(example, value).leaves()
    for quantity, ask in QUANTITIES.items():
        expected, found = ask(plain.crf()), ask(padded.crf())
        assert_close(found, expected, msg=quantity)
        if expected.requires_grad:
            assert_close(slopes(found, padded), slopes(expected, plain), msg=quantity)


def slopes(answer: Tensor, leaf: Example) -> tuple[Tensor, ...]:
    weights = torch.linspace(-1.0, 2.0, answer.numel(), dtype=torch.float64).view(answer.shape)
    scores = list(leaf.scores.values())
    return torch.autograd.grad((answer * weights).sum(), scores, materialize_grads=True)


@given(chains(), st.integers(1, 3))
def test_longer_padding_never_matters(example: Example, extra: int):
    """More steps beyond the lengths change nothing within them."""
    if example.transitions.dim() == example.emissions.dim() + 1:
        transitions = append(example.transitions, extra, dim=-3)
    else:
        transitions = example.transitions
    emissions = append(example.emissions, extra, dim=-2)
    before = example.crf()
    after = replace(example, emissions=emissions, transitions=transitions).crf()
    assert_close(after.log_partition, before.log_partition)
    assert_close(after.entropy(), before.entropy())
    assert_close(after.mean[..., :-extra, :], before.mean)
    assert torch.equal(after.argmax[..., :-extra], before.argmax)


def append(x: Tensor, count: int, dim: int) -> Tensor:
    """NaN at the end of a dimension."""
    shape = list(x.shape)
    shape[dim] = count
    return torch.cat([x, x.new_full(shape, torch.nan)], dim)


@given(chains())
def test_entropy_lies_between_zero_and_that_of_the_uniform(example: Example):
    crf = example.crf()
    num_states = crf.event_shape[1]
    slack = 1e-9
    entropies = [crf.renyi_entropy(order) for order in (0, 0.5, 1, 2, math.inf)]
    assert (entropies[0] <= crf.lengths * math.log(num_states) + slack).all()
    for larger, smaller in itertools.pairwise(entropies):
        assert (larger >= smaller - slack).all()
    assert (entropies[-1] >= -slack).all()


@given(chains())
def test_divergence_is_not_negative(example: Example):
    p, q = example.crf(), rescored(example).crf()
    assert (kl_divergence(p, q) >= -1e-9).all()
    assert (p.cross_entropy(q) >= p.entropy() - 1e-9).all()


@given(chains())
def test_marginals_are_consistent(example: Example):
    """Edges sum to nodes; nodes sum to 1 within the chain and to 0 beyond."""
    crf = example.crf()
    steps = inside(example).double()
    assert_close(crf.mean.sum(-1), steps)
    assert_close(crf.edge_marginals.sum(-2), crf.mean[..., 1:, :])
    assert_close(crf.edge_marginals.sum(-1), crf.mean[..., :-1, :] * steps[..., 1:, None])


@given(chains())
def test_probabilities_of_all_paths_sum_to_one(example: Example):
    """Every path of n steps appears K^(T - n) times among those of T steps."""
    crf = example.crf()
    num_steps, num_states = crf.event_shape
    repeats = float(num_states) ** (num_steps - crf.lengths)
    total = crf.log_prob(some_paths(crf)).exp().sum(0) / repeats
    assert_close(total, torch.ones_like(total))


# Bayes ---------------------------------------------------------------------------------------


@given(chains(), st.integers(0, 15))
def test_condition_is_bayes(example: Example, known: int):
    """p(z | observed) = p(z) / p(observed) where z agrees with what was observed, else 0."""
    crf = example.crf()
    num_steps = crf.event_shape[0]
    is_known = torch.tensor([bool(known >> t & 1) for t in range(num_steps)])
    observed = torch.where(is_known, crf.argmax, -1)
    posterior = crf.condition(observed)
    paths = some_paths(crf)
    agrees = ((paths == observed) | (observed == -1) | ~inside(example)).all(-1)
    log_evidence = posterior.log_partition - crf.log_partition
    expected = (crf.log_prob(paths) - log_evidence).where(agrees, -torch.inf)
    assert_close(posterior.log_prob(paths), expected)
    assert_close(log_evidence, evidence(example, observed).log())


def evidence(example: Example, observed: Tensor) -> Tensor:
    """[*B]: the probability of what was observed, by enumeration."""
    oracle = example.oracle()
    flat = observed.reshape(len(oracle.chains), -1)
    masses = []
    for chain, seen in zip(oracle.chains, flat, strict=True):
        agrees = (chain.paths == seen) | (seen == -1)
        masses.append(chain.probs[agrees[:, : chain.length].all(-1)].sum())
    return torch.stack(masses).reshape(oracle.batch_shape)


@given(chains())
def test_nothing_observed_changes_nothing(example: Example):
    crf = example.crf()
    same = crf.condition(torch.full(crf.event_shape[:1], -1))
    assert_close(same.mean, crf.mean)
    assert_close(same.log_partition, crf.log_partition)


@given(chains())
def test_everything_observed_leaves_one_path(example: Example):
    crf = example.crf()
    certain = crf.condition(crf.argmax)
    assert_close(certain.mean, crf.mode)
    assert_close(certain.entropy(), torch.zeros_like(certain.entropy()))
    assert_close(certain.log_partition - crf.log_partition, crf.log_prob(crf.argmax))


@given(chains(), st.integers(0, 1000))
def test_restrict_forbids(example: Example, seed: int):
    """The same as -inf in the emissions; the mask means nothing beyond the lengths."""
    crf = example.crf()
    coin = torch.rand(example.emissions.shape, generator=torch.Generator().manual_seed(seed))
    allowed = (coin < 0.6) | crf.mode.bool()
    allowed &= inside(example)[..., None]
    by_hand = example.emissions.masked_fill(~allowed & inside(example)[..., None], -torch.inf)
    found, expected = crf.restrict(allowed), replace(example, emissions=by_hand).crf()
    for quantity, ask in QUANTITIES.items():
        assert_close(ask(found), ask(expected), msg=quantity)


@given(chains(batch_shapes=[(), (3,)]))
def test_expand_equals_a_repeat(example: Example):
    crf = example.crf()
    grown, batch_shape = crf.expand((2, 3)), crf.batch_shape
    for quantity, ask in QUANTITIES.items():
        if quantity.endswith("expectation"):
            continue
        once = ask(crf)
        lead = once.dim() - len(batch_shape) if quantity in ("topk", "log_prob") else 0
        shape = (*once.shape[:lead], 2, 3, *once.shape[lead + len(batch_shape) :])
        missing = (None,) * (2 - len(batch_shape))
        expected = once[(slice(None),) * lead + missing].expand(shape)
        assert_close(ask(grown), expected, msg=quantity)


# Time reversal -------------------------------------------------------------------------------


def backwards(x: Tensor, count: Tensor, dim: int) -> Tensor:
    """The first `count` [*B] entries of a dimension in reverse order, the others as they were."""
    steps = torch.arange(x.shape[dim])
    index = torch.where(steps < count[..., None], count[..., None] - 1 - steps, steps)
    index = index.reshape(index.shape + (1,) * (-dim - 1))
    return x.gather(dim, index.expand(x.shape))


@given(chains())
def test_time_reversal(example: Example):
    lengths = example.lengths
    turned = example.transitions.transpose(-1, -2)
    if turned.dim() == example.emissions.dim() + 1:
        turned = backwards(turned, (lengths - 1).clamp(min=0), -3)
    emissions = backwards(example.emissions, lengths, -2)
    before = example.crf()
    after = LinearChainCRF(emissions, turned, lengths, start=example.end, end=example.start)
    assert_close(after.log_partition, before.log_partition)
    assert_close(after.entropy(), before.entropy())
    assert_close(after.mean, backwards(before.mean, lengths, -2))
    assert torch.equal(after.argmax, backwards(before.argmax, lengths, -1))
