"""Straight through the marginals: hard draws whose gradient is that of the mean event."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structdist.base import StructuredDistribution
from structdist.estimators.through_draws import ThroughDraws
from structdist.relaxation import straight_through


@dataclass(frozen=True, kw_only=True)
class ThroughMarginals(ThroughDraws):
    """Exact draws with the gradient of the exact marginals: SIMPLE, for structures.

    Exact, and the same for every draw, where the reward is linear in the event; else biased, by how
    much its slope differs between draws.

    One sweep, the marginals and their gradient, S draws, one call of the reward. Ahmed et al.
    (2023), "SIMPLE: A Gradient Estimator for k-Subset Sampling", with a chain in the place of
    subsets.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import Exact, ThroughMarginals
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> reward = lambda z: z[..., 0].sum(-1)  # linear in the event: one draw is enough
        >>> ThroughMarginals().estimate(dist, reward).surrogate.backward()
        >>> truth = torch.autograd.grad(Exact().estimate(dist, reward).surrogate, scores)[0]
        >>> torch.allclose(scores.grad, truth, atol=1e-5)
        True
    """

    def _draw(self, dist: StructuredDistribution, generator: torch.Generator | None) -> Tensor:
        hard = dist.sample((self.num_samples,), generator=generator)
        return straight_through(hard, dist.marginals.expand_as(hard))
