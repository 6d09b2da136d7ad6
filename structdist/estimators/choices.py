"""The choices behind an exact draw: what was chosen at each step, and with which probability.

A draw by Gumbel-FFBS chooses step by step, each choice given the hard ones before it. At
temperature 1 its relaxation is softmax(phi + g), phi being the log probabilities of a choice and g
its noise. So the probabilities are what is left once the noise is taken out again,

    softmax(phi) = softmax(phi + g) exp(-g), normalised,

for every structure, with the gradient of the sweep, and without a logarithm of 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist import ops
from structdist.base import StructuredDistribution
from structdist.relaxation import given_or_drawn


class Choices(NamedTuple):
    """Of S draws from N structures. What stands at a step where nothing is chosen is 0."""

    probs: Tensor  # [S, N, *noise_shape]: of each option, given the hard choices before
    hard: Tensor  # [S, N, *noise_shape]: one-hot
    path: Tensor  # [S, N, T]


def draw_choices(
    dist: StructuredDistribution, num_samples: int, generator: torch.Generator | None
) -> Choices:
    """Exact draws and their step-by-step probabilities, from one sweep."""
    noise_shape = (num_samples, *dist.batch_shape, *dist.noise_shape)
    noise = given_or_drawn(None, torch.Size(noise_shape), dist._parameters, generator)
    draw, shape = dist._gumbel_ffbs((num_samples,), 1.0, None, noise)
    weights = draw.soft * noise.view_as(draw.soft).neg().exp()
    hard = dist._hard_choices(draw.path.view(*shape, -1)).view_as(draw.soft)
    return Choices(normalized(weights, dist._choice_sizes), hard, draw.path)


def totals(x: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The sum of x [..., C] over the options of each choice, at every one of them."""
    sums = [part.sum(-1, keepdim=True).expand_as(part) for part in x.split(sizes, -1)]
    return torch.cat(sums, -1)


def normalized(weights: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Weights [..., C], those of each choice scaled to sum to one, or 0 where all of them are."""
    total = totals(weights, sizes)
    return weights / torch.where(total > 0, total, 1.0)


def events_of(dist: StructuredDistribution, choices: Tensor, path: Tensor) -> Tensor:
    """[S, *B, *event_shape]: the events of (relaxed) choices [S, N, *noise_shape]."""
    events = dist._events_of(ops.Draw(choices, path), None)
    return events.view(len(choices), *dist.batch_shape, *dist.event_shape)
