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
    """

    def _draw(self, dist: StructuredDistribution, generator: torch.Generator | None) -> Tensor:
        hard = dist.sample((self.num_samples,), generator=generator)
        return straight_through(hard, dist.marginals.expand_as(hard))
