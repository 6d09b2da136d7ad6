"""Stochastic softmax tricks: marginals of a perturbed structure in the place of its best path."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structdist import ops
from structdist.base import StructuredDistribution
from structdist.estimators.through_draws import RelaxedOrHard
from structdist.relaxation import COLDEST, given_or_drawn, straight_through


@dataclass(frozen=True, kw_only=True)
class StochasticSoftmax(RelaxedOrHard):
    """Marginals at a temperature of scores with Gumbel noise on every entry of the event. Biased.

    They tend to the best path as the temperature falls, which is a draw of Perturb-and-MAP with
    noise on nodes (on segments), not an exact one. Their gradient is exact: nothing is chosen on
    the way. With `straight_through` the reward is given the best paths themselves. The temperature
    is one number, or a tensor of no dimension.

    S sweeps (each draw has scores of its own), marginals and their gradients, one call of the
    reward. Paulus et al. (2020), "Gradient Estimation with Stochastic Softmax Tricks".
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
        problem = perturbed._problem()
        problem = problem.with_scores([self._cooled(x) for x in problem.scores])
        soft = ops.marginals(problem, ops.run_forward(problem), dist._event_part).view(shape)
        return straight_through(perturbed.mode, soft) if self.straight_through else soft

    def _cooled(self, scores: Tensor) -> Tensor:
        """Scores divided by the temperature: finite where they were, else untouched."""
        finite, largest = scores.isfinite(), torch.finfo(scores.dtype).max
        temperature = torch.as_tensor(self.temperature).to(scores).clamp(min=COLDEST)
        cooled = torch.where(finite, scores, 0.0) / temperature
        return torch.where(finite, cooled.clamp(-largest, largest), scores)
