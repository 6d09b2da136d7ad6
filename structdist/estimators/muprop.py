"""MuProp: the score function, less a linear control variate whose mean has an exact gradient."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structdist.base import StructuredDistribution
from structdist.estimators.estimator import Estimate, Estimator, Reward
from structdist.estimators.score_function import score_term


@dataclass(frozen=True, kw_only=True)
class MuProp(Estimator):
    """REINFORCE on what a tangent of the reward at the mean event leaves. Unbiased.

    The tangent, f(mu) + f'(mu) (z - mu), mu being the marginals, is taken off the reward of every
    draw; its own expectation has the gradient f'(mu) dmu, which the marginals know exactly. Without
    variance where the reward is linear. The reward must make sense of relaxed events, if only as a
    guess.

    One sweep, the marginals and their gradient, S draws and the gradient of log p; two calls of the
    reward, for S draws and for the mean event, and the gradient of the second. Gu et al. (2016),
    "MuProp: Unbiased Backpropagation for Stochastic Neural Networks", whose mean-field forward pass
    is exact here. (REBAR and RELAX would reparameterise the draw. Forward filtering, backward
    sampling does that only piecewise: noise decides which conditional the next step draws from, so
    the gradient of the relaxed draw misses the jumps, and the estimate would be biased.)

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import Exact, MuProp
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> reward = lambda z: z[..., 0].sum(-1)  # linear in the event: no variance
        >>> MuProp().estimate(dist, reward).surrogate.backward()
        >>> truth = torch.autograd.grad(Exact().estimate(dist, reward).surrogate, scores)[0]
        >>> torch.allclose(scores.grad, truth, atol=1e-5)
        True
    """

    pathwise = True
    unbiased = True

    num_samples: int = 1

    def __post_init__(self) -> None:
        self._require_num_samples(self.num_samples)

    @property
    def relaxed(self) -> bool:
        return True

    def _estimate(
        self, dist: StructuredDistribution, reward: Reward, generator: torch.Generator | None
    ) -> Estimate:
        paths, log_prob = dist.sample_with_log_prob((self.num_samples,), generator=generator)
        events = dist._events(paths)
        rewards = self._rewards(dist, reward, events)
        surrogate = rewards.mean()
        if log_prob.requires_grad:
            mean = dist.marginals
            at_mean, slope = self._tangent(dist, reward, mean.detach())
            gap = _inner(slope, events - mean.detach(), dist)
            surrogate = surrogate + score_term(rewards.detach() - at_mean - gap, log_prob)
            surrogate = surrogate + _inner(slope, mean - mean.detach(), dist).mean()
        return Estimate(surrogate, rewards.detach(), events)

    def _tangent(
        self, dist: StructuredDistribution, reward: Reward, mean: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The reward [*B] of the mean event, and its slope [*B, *event_shape] there."""
        point = mean.unsqueeze(0).requires_grad_()
        rewards = self._rewards(dist, reward, point)
        return rewards.detach()[0], self._slopes(rewards, point)[0]


def _inner(slope: Tensor, events: Tensor, dist: StructuredDistribution) -> Tensor:
    """The inner product of events, [..., *B] in all."""
    return (slope * events).flatten(-len(dist.event_shape)).sum(-1)
