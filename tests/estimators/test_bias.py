"""Unbiased estimators are unbiased, and the bias of the others is seen: against enumeration.

Seeds are fixed. Of unbiased estimators every coordinate of the mean must lie within 5 standard
errors: with some 250 coordinates in all, a right one would fail for 1 seed in 6,000.
"""

from __future__ import annotations

import pytest
import torch

from structdist.estimators import ESTIMATORS, Estimator, estimator
from tests.estimators.runs import (
    linear,
    quadratic,
    relative_bias,
    single,
    tanh,
    target,
    z_scores,
)
from tests.structures.registry import over

UNBIASED = [name for name, x in ESTIMATORS.items() if x.unbiased and name != "exact"]
BIASED = [name for name, x in ESTIMATORS.items() if not x.unbiased]
ERRORS_TO_TELL = 5.0


def with_two_samples(name: str) -> Estimator:
    return estimator(name, num_samples=2)


@over(name=UNBIASED)
@pytest.mark.parametrize("forbidding", [False, True])
def test_unbiased(structure, name, forbidding):
    example = single(structure)
    if forbidding:
        example = structure.forbid_some(example, seed=2)
    problem = target(example, tanh)
    runs = problem.gradients(with_two_samples(name), 4000)
    assert (z_scores(runs, problem.gradient) < ERRORS_TO_TELL).all()


@over(name=BIASED)
def test_a_bias_is_seen(structure, name):
    """The same test does find a bias: the estimate is off by far more than its error."""
    problem = target(single(structure), tanh)
    runs = problem.gradients(with_two_samples(name), 4000)
    assert z_scores(runs, problem.gradient).max() > 2 * ERRORS_TO_TELL
    assert relative_bias(runs, problem.gradient) > 0.01


@over()
def test_exact_has_neither_bias_nor_variance(structure):
    problem = target(structure.forbid_some(single(structure), seed=2), tanh)
    runs = problem.gradients(ESTIMATORS["exact"], 3)
    torch.testing.assert_close(runs, problem.gradient.expand(3, -1))


@over(name=["simple", "muprop"])
def test_exact_for_linear_rewards(structure, name):
    problem = target(structure.forbid_some(single(structure), seed=2), linear)
    runs = problem.gradients(ESTIMATORS[name], 20)
    torch.testing.assert_close(runs, problem.gradient.expand(20, -1))


@over()
def test_reinmax_is_unbiased_for_one_choice_and_quadratic_rewards(structure):
    """Straight-through, to the first order, is not."""
    problem = target(single(structure, num_steps=1), quadratic)
    second_order = problem.gradients(ESTIMATORS["reinmax"], 10_000)
    assert (z_scores(second_order, problem.gradient) < ERRORS_TO_TELL).all()
    first_order = problem.gradients(ESTIMATORS["simple"], 10_000)
    assert z_scores(first_order, problem.gradient).max() > 2 * ERRORS_TO_TELL


@over()
def test_more_samples_have_less_variance(structure):
    problem = target(single(structure), tanh)
    few, many = (
        problem.gradients(estimator("reinforce-ms", num_samples=n), 1000).var(0).sum()
        for n in (4, 32)
    )
    assert few / many == pytest.approx(8, rel=0.4)


@pytest.mark.slow
@over(name=UNBIASED)
def test_unbiased_to_the_third_digit(structure, name):
    """The same with a hundred times as many runs: an error of 1% would be seen."""
    problem = target(single(structure), tanh)
    estimates = with_two_samples(name)
    runs = torch.cat([problem.gradients(estimates, 20_000, seed) for seed in range(20)])
    assert (z_scores(runs, problem.gradient) < ERRORS_TO_TELL).all()
    assert relative_bias(runs, problem.gradient) < 0.02
