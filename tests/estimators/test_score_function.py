"""Baselines of the score function, and the names it goes by."""

from __future__ import annotations

import torch

from structdist import LinearChainCRF
from structdist.estimators import estimator
from structdist.estimators.score_function import others_mean
from tests.estimators.runs import linear, tanh
from tests.structures.registry import over
from tests.structures.structure import normal, seeded


@over()
def test_leave_one_out_is_the_sample_covariance(structure):
    """VarGrad: the covariance of rewards and log p, with S - 1, has the gradient of RLOO."""
    example = structure.random("covariance", (5,)).leaves()
    dist = example.crf()
    reward = tanh(dist.event_shape)
    estimate = estimator("vargrad").estimate(dist, reward, generator=seeded(0))
    log_prob = dist.log_prob(estimate.draws)
    centered = estimate.rewards - estimate.rewards.mean(0)
    covariance = (centered * log_prob).sum(0) / (len(log_prob) - 1)
    scores = list(example.scores.values())
    found = torch.autograd.grad(estimate.surrogate, scores)
    expected = torch.autograd.grad(covariance.mean(), scores)
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right)


def test_others_mean():
    rewards = torch.tensor([[1.0], [2.0], [6.0]])
    assert others_mean(rewards).flatten().tolist() == [4.0, 3.5, 1.5]


def reinforce_gradient(name: str, **settings) -> torch.Tensor:
    emissions = normal(4, 3, 2).requires_grad_()
    dist = LinearChainCRF(emissions, normal(2, 2, seed=1))
    estimates = estimator(name, num_samples=3, **settings)
    estimate = estimates.estimate(dist, linear(dist.event_shape), generator=seeded(0))
    return torch.autograd.grad(estimate.surrogate, emissions)[0]


def test_a_constant_is_a_baseline_and_a_scale_scales():
    plain = reinforce_gradient("reinforce")
    lowered = reinforce_gradient("reinforce-c", constant=2.0)
    twice = reinforce_gradient("reinforce-c", constant=4.0)
    torch.testing.assert_close(twice - lowered, lowered - plain)
    assert not torch.allclose(lowered, plain)
    torch.testing.assert_close(reinforce_gradient("reinforce", reward_scale=3.0), 3 * plain)
