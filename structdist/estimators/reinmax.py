"""ReinMax: straight-through to the second order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structdist.base import StructuredDistribution
from structdist.estimators.choices import draw_choices, events_of, normalized
from structdist.estimators.through_draws import ThroughDraws
from structdist.relaxation import straight_through


@dataclass(frozen=True, kw_only=True)
class ReinMax(ThroughDraws):
    """Exact draws, each choice of which has the gradient of 2 pi' - pi / 2.

    pi are its probabilities, and pi' those halfway between them and the hard choice. That is Heun's
    method where straight-through is Euler's: without bias for one choice and a reward that is
    quadratic in it. Over several steps it is biased, since no choice sees what it does to the
    probabilities of the next.

    One sweep and its gradient, S draws, one call of the reward. Liu et al. (2023), "Bridging
    Discrete and Backpropagation: Straight-Through and Beyond", applied to each step of
    forward filtering, backward sampling.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import ReinMax
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> reward = lambda z: z[..., 0].sum(-1) ** 2
        >>> ReinMax(num_samples=8).estimate(dist, reward).surrogate.backward()
        >>> scores.grad.shape
        torch.Size([6, 4])
    """

    def _draw(self, dist: StructuredDistribution, generator: torch.Generator | None) -> Tensor:
        probs, hard, path = draw_choices(dist, self.num_samples, generator)
        known = probs.detach()
        # Weights that turn pi into pi', and follow its gradient.
        weights = 1.0 + torch.where(hard > 0, 1.0 / torch.where(hard > 0, known, 1.0), 0.0)
        halfway = normalized(probs * weights, dist._choice_sizes)
        return events_of(dist, straight_through(hard, 2.0 * halfway - probs / 2.0), path)
