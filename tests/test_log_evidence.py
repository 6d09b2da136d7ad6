"""`log_evidence`: the log of the sum over paths that have what was observed, by enumeration."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from structdist import LinearChainCRF, SemiMarkov, SemiMarkovCRF
from tests.chains import seeded

T, L, K = 4, 2, 3


def scores(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64).requires_grad_()


def chain() -> LinearChainCRF:
    return LinearChainCRF(scores(T, K, seed=0), scores(K, K, seed=1))


def segmentation() -> SemiMarkovCRF:
    return SemiMarkovCRF(scores(T, K, seed=0), scores(K, K, seed=1), scores(L, K, seed=2))


OBSERVED = [[-1, -1, -1, -1], [2, -1, -1, 0], [-1, 1, 1, -1], [0, 1, 2, 1]]


@pytest.mark.parametrize("observed", OBSERVED)
def test_of_states(observed: list[int]):
    dist, known = chain(), torch.tensor(observed)
    events = dist.enumerate_support()
    fits = ((known == -1) | (events.argmax(-1) == known)).all(-1)
    assert_same(dist, dist.log_evidence(known), dist.log_prob(events[fits]))


@pytest.mark.parametrize("observed", OBSERVED)
@pytest.mark.parametrize("starts", [[-1, -1, -1, -1], [1, -1, 0, -1]])
def test_of_labels_and_starts(observed: list[int], starts: list[int]):
    dist, labels, begins = segmentation(), torch.tensor(observed), torch.tensor(starts)
    events = dist.enumerate_support()
    found = dist.labels_of(events)
    fits = ((labels == -1) | (found.labels == labels)).all(-1)
    fits &= ((begins == -1) | (found.starts == begins)).all(-1)
    evidence = dist.log_evidence(labels=labels, starts=begins)
    if not fits.any():  # a segment cannot go on with another label
        assert evidence == -torch.inf
        return
    assert_same(dist, evidence, dist.log_prob(events[fits]))


def assert_same(dist, evidence: torch.Tensor, log_probs: torch.Tensor) -> None:
    """As the sum over paths has it, and with its gradient."""
    expected = log_probs.logsumexp(0)
    assert_close(evidence, expected)
    leaves = [dist.emissions, dist.transitions]
    found = torch.autograd.grad(evidence, leaves, retain_graph=True, materialize_grads=True)
    wanted = torch.autograd.grad(expected, leaves, retain_graph=True)
    assert_close(found, wanted, atol=1e-10, rtol=1e-6)


def test_what_cannot_be_has_minus_infinity_and_no_gradient():
    emissions = scores(2, T, K, seed=0)
    transitions = torch.zeros(K, K, dtype=torch.float64).requires_grad_()
    forbidden = torch.zeros(K, K, dtype=torch.bool)
    forbidden[0, 1] = True
    dist = LinearChainCRF(emissions, transitions.masked_fill(forbidden, -torch.inf))
    evidence = dist.log_evidence(torch.tensor([[0, 1, -1, -1], [0, 2, -1, -1]]))
    assert evidence[0] == -torch.inf
    assert evidence[1].isfinite()
    evidence[1].backward()
    assert emissions.grad.isfinite().all()
    assert transitions.grad.isfinite().all()
    with pytest.raises(ValueError, match="no allowed path"):
        _ = dist.condition(torch.tensor([0, 1, -1, -1])).log_partition


def test_lengths_and_batches():
    """What stands beyond the length is not observed; observations broadcast."""
    emissions, transitions = scores(T, K, seed=0), scores(K, K, seed=1)
    short = LinearChainCRF(emissions[:2], transitions)
    padded = LinearChainCRF(emissions, transitions, torch.tensor(2))
    observed = torch.tensor([[0, -1, 1, 1], [-1, 2, 0, 0]])
    assert_close(padded.log_evidence(observed), short.log_evidence(observed[:, :2]))
    empty = LinearChainCRF(emissions, transitions, torch.tensor(0))
    assert empty.log_evidence(observed[0]).item() == 0.0


def test_partial_segments_in_the_loss_of_a_layer():
    layer = SemiMarkov(K, L, start=True, dtype=torch.float64)
    emissions = scores(2, T, K, seed=0)
    labels = torch.tensor([[1, -100, -100, 2], [0, 0, 2, 9]])
    starts = torch.tensor([[1, -100, 1, 1], [1, 0, 1, 9]])
    lengths = torch.tensor([4, 3])
    loss = layer.loss(emissions, labels, starts, lengths, ignore_index=-100)
    dist = layer(emissions, lengths)
    hidden = [torch.where(x == -100, -1, x) for x in (labels, starts)]
    assert_close(loss, -dist.log_evidence(labels=hidden[0], starts=hidden[1]).mean())
    known = layer.loss(emissions[1:], labels[1:], starts[1:] == 1, lengths[1:])
    partly = layer.loss(emissions[1:], labels[1:], starts[1:] == 1, lengths[1:], ignore_index=-100)
    assert_close(partly, known)
    with pytest.raises(ValueError, match=r"labels and starts at batch index \(0,\)"):
        layer.loss(emissions, labels, torch.zeros_like(starts), lengths, ignore_index=-100)
    mask = torch.arange(T) < lengths.unsqueeze(-1)
    assert_close(layer.loss(emissions, labels, starts, mask=mask, ignore_index=-100), loss)
