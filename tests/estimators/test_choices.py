"""The choices behind a draw: their probabilities are those of the path, for every structure."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from structdist.estimators.choices import draw_choices, events_of
from tests.derivatives import gradients
from tests.structures.registry import over
from tests.structures.structure import BaseExample, normal, seeded


def log_prob_of_choices(example: BaseExample) -> tuple[Tensor, Tensor]:
    """[S, N] each: the log probabilities of all that was chosen, summed, and that of the path."""
    dist = example.crf()
    probs, hard, path = draw_choices(dist, 3, seeded(0))
    chosen = torch.where(hard > 0, probs, 1.0).log().flatten(2).sum(-1)
    return chosen, dist.log_prob(path.view(3, *dist.batch_shape, -1)).view_as(chosen)


@over(example="examples")
def test_they_multiply_to_the_probability_of_the_path(example):
    leaves = example.with_padding(torch.nan).leaves()
    by_choice, of_path = log_prob_of_choices(leaves)
    torch.testing.assert_close(by_choice, of_path)
    found, expected = (gradients(x, leaves) for x in (by_choice, of_path))
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right)


@over(example="few")
def test_in_single_precision(example):
    by_choice, of_path = log_prob_of_choices(example.to(torch.float32))
    torch.testing.assert_close(by_choice, of_path, rtol=1e-4, atol=1e-4)


@over(example="examples")
def test_each_choice_is_one_of_its_options(example):
    dist = example.crf()
    probs, hard, path = draw_choices(dist, 3, seeded(1))
    paths = path.view(3, *dist.batch_shape, -1)
    for part, one_hot in zip(
        probs.split(dist._choice_sizes, -1), hard.split(dist._choice_sizes, -1), strict=True
    ):
        chosen = one_hot.sum(-1)
        assert ((chosen == 0) | (chosen == 1)).all()
        torch.testing.assert_close(part.sum(-1), chosen)
    assert torch.equal(events_of(dist, hard, path), dist.event_of(paths))


@over(example="examples")
def test_shifted_scores(example):
    """The score of each outcome grows by the values where its event has ones."""
    dist = example.crf()
    values = normal(3, *dist.batch_shape, *dist.event_shape, seed=3)
    shifted = dist._shifted(values)
    paths = dist.sample_paths((3,), generator=seeded(4))
    events = dist.event_of(paths)
    gained = (shifted.log_prob(paths) + shifted.log_partition) - (
        dist.log_prob(paths) + dist.log_partition
    )
    expected = (events * values).flatten(events.dim() - len(dist.event_shape)).sum(-1)
    torch.testing.assert_close(gained, expected)
    assert shifted.batch_shape == (3, *dist.batch_shape)


@over(dtype=[torch.float32, torch.float64])
@pytest.mark.parametrize("mask", [-1e4, -1e9, None])
def test_finite_masks(structure, dtype, mask):
    """What is masked by a large number is never chosen, and leaves no NaN."""
    mask = torch.finfo(dtype).min if mask is None else mask
    example = structure.forbid_some(structure.random("masked", (5,)), seed=3).to(dtype)
    scores = [x.masked_fill(x == -torch.inf, mask) for x in example.scores.values()]
    leaves = example.with_scores(*scores).leaves()
    by_choice, of_path = log_prob_of_choices(leaves)
    torch.testing.assert_close(by_choice, of_path, rtol=1e-4, atol=1e-4)
    assert all(x.isfinite().all() for x in gradients(by_choice, leaves))
