"""Labels to and from integers, and the probability of each, against enumeration."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import LinearChainCRF, SemiMarkovCRF, tagging
from tests.chains import seeded

LENGTHS = torch.tensor([3, 1, 0])
NAMES = ["O", "x"]


def chain() -> LinearChainCRF:
    generator = seeded(0)
    emissions = torch.randn(3, 3, 2, generator=generator, dtype=torch.float64)
    transitions = torch.randn(2, 2, generator=generator, dtype=torch.float64)
    return LinearChainCRF(emissions, transitions, LENGTHS)


def segmentation() -> SemiMarkovCRF:
    dist = chain()
    durations = torch.randn(3, 2, generator=seeded(1), dtype=torch.float64)
    return SemiMarkovCRF(dist.emissions, dist.transitions, durations, LENGTHS)


def token_labels(dist: LinearChainCRF | SemiMarkovCRF, value: Tensor) -> Tensor:
    return dist.labels_of(value).labels if isinstance(dist, SemiMarkovCRF) else value.argmax(-1)


both = pytest.mark.parametrize("make", [chain, segmentation])


@both
def test_decoded_labels_are_those_of_the_mode_and_as_many_as_steps(make):
    dist = make()
    best = token_labels(dist, dist.mode)
    expected = [row[:size] for row, size in zip(best.tolist(), LENGTHS.tolist(), strict=True)]
    assert tagging.decode(dist) == expected
    assert [len(row) for row in expected] == [3, 1, 0]
    assert tagging.decode(dist, NAMES) == [[NAMES[k] for k in row] for row in expected]


@both
def test_confidence_is_the_sum_over_paths_with_the_label(make):
    """Of the best labels and of others; beyond the lengths it is 0."""
    dist = make()
    other = torch.tensor([[1, 0, 1], [0, 7, -100], [0, 1, 0]])
    for labels in (None, other):
        found = tagging.confidence(dist, labels)
        asked = token_labels(dist, dist.mode) if labels is None else labels
        for index, length in enumerate(LENGTHS.tolist()):
            expected = torch.zeros(3, dtype=torch.float64)
            if length > 0:
                every = _chain_at(dist, index, length)
                events = every.enumerate_support()
                probabilities = every.log_prob(events).exp()
                has = token_labels(every, events) == asked[index, :length]
                expected[:length] = (probabilities.unsqueeze(-1) * has).sum(0)
            assert_close(found[index], expected)


def _chain_at(dist, index: int, length: int):
    """One chain of a batch alone, as long as it is."""
    parts = [dist.emissions[index, :length], dist.transitions]
    if isinstance(dist, SemiMarkovCRF):
        parts.append(dist.durations)
    return type(dist)(*parts)


def test_confidence_has_a_gradient_and_takes_batches_of_any_shape():
    emissions = torch.randn(2, 3, 4, 2, generator=seeded(0), requires_grad=True)
    dist = LinearChainCRF(emissions, torch.zeros(2, 2))
    found = tagging.confidence(dist, torch.tensor([0, 1, 1, 0]))
    assert found.shape == (2, 3, 4)
    found.sum().backward()
    assert emissions.grad.abs().sum() > 0
    assert len(tagging.decode(dist)) == 6


@pytest.mark.parametrize("names", [["O"], ["O", "O"], "Ox"])
def test_bad_names(names):
    with pytest.raises(ValueError, match="names must"):
        tagging.decode(chain(), names)


def test_labels_are_encoded_and_decoded():
    numbers = tagging.encode([["x", None, "O"], ["O"], []], NAMES)
    assert numbers.tolist() == [[1, -100, 0], [0, -100, -100], [-100] * 3]
    assert tagging.encode([], NAMES).shape == (0, 0)
    dist = chain()
    paths = tagging.encode(tagging.decode(dist, NAMES), NAMES)
    assert torch.equal(dist.log_prob(paths), dist.log_prob(dist.argmax))


def test_an_unknown_name_is_said():
    with pytest.raises(ValueError, match=r"sentence 1, position 0: 'y' is none of O, x"):
        tagging.encode([["O"], ["y"]], NAMES)
