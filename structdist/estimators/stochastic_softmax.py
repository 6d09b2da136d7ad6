"""Stochastic softmax tricks: marginals of a perturbed structure in the place of its best path."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structdist import ops
from structdist.base import StructuredDistribution
from structdist.estimators.through_draws import RelaxedOrHard
from structdist.relaxation import given_or_drawn, require_temperature, straight_through


@dataclass(frozen=True, kw_only=True)
class StochasticSoftmax(RelaxedOrHard):
    """Marginals at a temperature of scores with Gumbel noise on every entry of the event. Biased.

    They tend to the best path as the temperature falls, which is a draw of Perturb-and-MAP with
    noise on nodes (on segments), not an exact one. Their gradient is exact: nothing is chosen on
    the way. With `straight_through` the reward is given the best paths themselves. The temperature
    is one number, or a tensor of no dimension.

    S sweeps (each draw has scores of its own), marginals and their gradients, one call of the
    reward. Paulus et al. (2020), "Gradient Estimation with Stochastic Softmax Tricks".

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import StochasticSoftmax
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> reward = lambda z: z[..., 0].sum(-1) ** 2
        >>> estimate = StochasticSoftmax(num_samples=3, temperature=0.5).estimate(dist, reward)
        >>> torch.allclose(estimate.draws.sum(-1), torch.ones(3, 6))  # relaxed rows
        True
        >>> estimate.surrogate.backward()
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.temperature, Tensor) and self.temperature.dim() > 0:
            raise ValueError(
                f"temperature must be one number, got a tensor {tuple(self.temperature.shape)}"
            )

    def _draw(self, dist: StructuredDistribution, generator: torch.Generator | None) -> Tensor:
        shape = torch.Size([self.num_samples, *dist.batch_shape, *dist.event_shape])
        perturbed = dist._shifted(given_or_drawn(None, shape, dist._parameters, generator))
        if dist._validating:
            dist._forward(dist._problem())  # raises where there is no path to find
        temperature = require_temperature(self.temperature, torch.Size(), (1, 1), dist._validating)
        problem = perturbed._problem()
        problem = problem.with_scores([_cooled(x, temperature) for x in problem.scores])
        soft = ops.marginals(problem, ops.run_forward(problem), dist._event_part).view(shape)
        return straight_through(perturbed.mode, soft) if self.straight_through else soft


def _cooled(scores: Tensor, temperature: float | Tensor) -> Tensor:
    """Scores divided by a temperature, one number: finite where they were, else untouched."""
    finite, largest = scores.isfinite(), torch.finfo(scores.dtype).max
    divisor = torch.as_tensor(temperature).to(scores).view(())
    cooled = torch.where(finite, scores, 0.0) / divisor
    return torch.where(finite, cooled.clamp(-largest, largest), scores)
