"""Laws of linear chains alone, searched by hypothesis: states, steps and moves."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import kl_divergence
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import Example
from tests.structures.linear_chain import any_chain, paths_of
from tests.structures.structure import paths_over_batch


def inside(example: Example) -> Tensor:
    """Which steps lie within the lengths: bool [*B, T]."""
    return torch.arange(example.emissions.shape[-2]) < example.lengths[..., None]


@given(any_chain(), st.integers(0, 3), st.floats(-50, 50))
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


@given(any_chain(), st.randoms(use_true_random=False))
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


@given(any_chain(), st.integers(1, 3))
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


@given(any_chain())
def test_log_number_of_paths_is_at_most_n_log_k(example: Example):
    crf = example.crf()
    most = crf.lengths * math.log(crf.event_shape[1])
    assert (crf.renyi_entropy(0) <= most + 1e-9).all()


@given(any_chain())
def test_marginals_are_consistent(example: Example):
    """Edges sum to nodes; nodes sum to 1 within the chain and to 0 beyond."""
    crf = example.crf()
    steps = inside(example).double()
    assert_close(crf.mean.sum(-1), steps)
    assert_close(crf.edge_marginals.sum(-2), crf.mean[..., 1:, :])
    assert_close(crf.edge_marginals.sum(-1), crf.mean[..., :-1, :] * steps[..., 1:, None])


@given(any_chain())
def test_every_path_counts_as_often_as_its_padding_differs(example: Example):
    """Every path of n steps appears K^(T - n) times among those of T steps."""
    crf = example.crf()
    num_steps, num_states = crf.event_shape
    repeats = float(num_states) ** (num_steps - crf.lengths)
    paths = paths_over_batch(paths_of(crf.event_shape), crf.batch_shape)
    total = crf.log_prob(paths).exp().sum(0) / repeats
    assert_close(total, torch.ones_like(total))


# Time reversal -------------------------------------------------------------------------------


def backwards(x: Tensor, count: Tensor, dim: int) -> Tensor:
    """The first `count` [*B] entries of a dimension in reverse order, the others as they were."""
    steps = torch.arange(x.shape[dim])
    index = torch.where(steps < count[..., None], count[..., None] - 1 - steps, steps)
    index = index.reshape(index.shape + (1,) * (-dim - 1))
    return x.gather(dim, index.expand(x.shape))


@given(any_chain())
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
