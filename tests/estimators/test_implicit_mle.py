"""Implicit MLE: large and small steps, and those that adapt."""

from __future__ import annotations

import pytest
import torch

from structdist.estimators import IMLE, AdaptiveStep, estimator
from tests.estimators.runs import linear, relative_bias, single, target
from tests.structures.registry import over
from tests.structures.structure import seeded


@over(exact_draws=[False, True])
def test_a_large_step_leads_to_the_best_outcome_of_the_reward(structure, exact_draws):
    """The gradient is the difference of two outcomes, divided by the step."""
    example = structure.random("far", (5,)).leaves()
    dist = example.crf()
    reward = linear(dist.event_shape)
    step = 1e6
    estimates = IMLE(step=step, exact_draws=exact_draws)
    estimate = estimates.estimate(dist, reward, generator=seeded(0))
    weights = torch.autograd.functional.jacobian(reward, dist.mode[0].double())
    best = example.crf()._shifted((1e6 * weights).expand(5, *dist.event_shape)).mode
    first = next(iter(example.scores.values()))  # has the shape of events
    (found,) = torch.autograd.grad(estimate.surrogate, first)
    torch.testing.assert_close(5 * step * found, best - estimate.draws[0])


@over()
def test_a_small_step_from_exact_draws_is_right_for_linear_rewards(structure):
    problem = target(single(structure), linear)
    bias = {}
    for step, num_runs in ((2.0, 4000), (0.05, 40_000)):
        runs = problem.gradients(IMLE(step=step, exact_draws=True), num_runs)
        bias[step] = relative_bias(runs, problem.gradient)
    assert bias[0.05] < 0.15
    assert bias[2.0] > 2 * bias[0.05]


@over()
def test_an_adaptive_step_changes_as_much_as_is_wanted(structure):
    dist = structure.random("adaptive", (5,), lengths=None).leaves().crf()
    reward = linear(dist.event_shape)
    step = AdaptiveStep(wanted_changes=0.5, rate=0.1)
    estimates, generator = IMLE(num_samples=20, step=step), seeded(0)
    changes = []
    for _ in range(40):
        estimates.estimate(dist, lambda z: 100 * reward(z), generator=generator)
        changes.append(step.mean_changes)
    assert sum(changes[20:]) / 20 == pytest.approx(0.5, rel=0.3)


def test_steps_of_draws_without_a_slope():
    slopes = torch.zeros(2, 1, 3, 4)
    slopes[1, 0, 2, 1] = -4.0
    assert AdaptiveStep(reach=2.0).sizes(slopes, 2).tolist() == [[1.0], [0.5]]


def test_registered_steps_do_not_share_their_state():
    first, second = estimator("aimle"), estimator("aimle")
    first.step.observe(torch.ones(1, 2, 3), 1)
    assert first.step.mean_changes == 6
    assert second.step.mean_changes is None
