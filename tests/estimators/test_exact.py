"""The exact gradient, beside the oracle."""

from __future__ import annotations

import torch

from structdist.estimators import estimator
from tests.estimators.runs import flat, tanh
from tests.structures.registry import over
from tests.structures.structure import normal


@over(example="few")
def test_exact_of_ragged_chains(example):
    """Lengths 0 and 1 among others, forbidden scores, NaN in the padding: as the oracle has it."""
    leaves = example.with_padding(torch.nan).leaves()
    dist = leaves.crf()
    reward = tanh(dist.event_shape)
    means = [(single.probs * reward(single.events())).sum() for single in leaves.oracle().singles]
    scores = list(leaves.scores.values())
    expected = torch.stack(means).mean()
    estimate = estimator("exact").estimate(dist, reward)
    torch.testing.assert_close(estimate.surrogate, expected)
    found, truth = (
        torch.autograd.grad(x, scores, materialize_grads=True)
        for x in (estimate.surrogate, expected)
    )
    for left, right in zip(found, truth, strict=True):
        torch.testing.assert_close(left, right)


@over()
def test_exact_gradient_of_the_reward_itself(structure):
    dist = structure.random("own", (5,)).crf()
    weights = normal(dist.event_shape.numel()).requires_grad_()
    estimate = estimator("exact").estimate(dist, lambda z: flat(z, dist.event_shape) @ weights)
    (found,) = torch.autograd.grad(estimate.surrogate, weights)
    torch.testing.assert_close(found, flat(dist.marginals, dist.event_shape).mean(0))
