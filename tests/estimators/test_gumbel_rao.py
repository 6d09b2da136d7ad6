"""Gumbel-Rao: the straight-through estimate, averaged over the noise that gives the same draw.

The mean over 4,000 runs must be that of straight-through within 5 standard errors in each of some
50 coordinates: a right one would fail for 1 seed in 30,000.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.estimators import GumbelCRF, GumbelRao
from structdist.estimators.choices import draw_choices
from tests.estimators.runs import single, tanh, target
from tests.structures.registry import over
from tests.structures.structure import seeded


@over(temperature=[0.3, 1.0])
def test_it_has_the_mean_of_straight_through_and_less_variance(structure, temperature):
    problem = target(single(structure), tanh)
    plain = problem.gradients(GumbelCRF(temperature=temperature, straight_through=True), 4000)
    averaged = problem.gradients(GumbelRao(temperature=temperature), 4000, seed=1)
    error = ((plain.var(0) + averaged.var(0)) / 4000).sqrt().clamp(min=1e-9)
    assert ((plain.mean(0) - averaged.mean(0)).abs() < 5 * error).all()
    assert averaged.var(0).sum() < 0.8 * plain.var(0).sum()


@over()
def test_much_noise_gives_the_mean_over_noise(structure):
    """Of one hard draw: two averages over much noise agree, two over little do not."""
    dist = structure.random("noise", (5,)).crf()
    choices = draw_choices(dist, 1, seeded(0))

    def average(noise_samples: int, seed: int) -> Tensor:
        return GumbelRao(noise_samples=noise_samples)._relaxed_choices(dist, choices, seeded(seed))

    def spread(noise_samples: int) -> float:
        return (average(noise_samples, 1) - average(noise_samples, 2)).norm().item()

    assert spread(10_000) < 0.1 * spread(2)


@over()
def test_the_hard_choice_wins(structure):
    """Under every noise, at every temperature; forbidden options keep nothing."""
    dist = structure.forbid_some(structure.random("hard", (5,)), seed=1).crf()
    choices = draw_choices(dist, 20, seeded(0))
    once = GumbelRao(noise_samples=1, num_samples=20, temperature=2.0)
    soft = once._relaxed_choices(dist, choices, seeded(1))
    assert (soft[choices.probs == 0] == 0).all()
    for part, hard in zip(
        soft.split(dist._choice_sizes, -1), choices.hard.split(dist._choice_sizes, -1), strict=True
    ):
        torch.testing.assert_close(part.sum(-1), hard.sum(-1))
        assert (part.amax(-1) == (part * hard).amax(-1)).all()
