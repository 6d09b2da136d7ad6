"""One structure whose gradient is estimated: its scores, and copies of it for independent runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from structdist import LinearChainCRF, SemiMarkovCRF, StructuredDistribution

LONGEST = 3  # segments of semi-Markov chains


@dataclass(frozen=True)
class Problem(ABC):
    """Scores without a batch, in float64."""

    scores: tuple[Tensor, ...]

    @abstractmethod
    def distribution(
        self, scores: tuple[Tensor, ...], events: Tensor | None = None, edges: Tensor | None = None
    ) -> StructuredDistribution:
        """Of scores that may have a batch; with values [..., *event_shape] on its events added.

        Linear chains take values [..., T-1, K, K] on pairs of neighbours as well.
        """

    @property
    def event_shape(self) -> torch.Size:
        return self.distribution(self.scores).event_shape

    def copies(self, runs: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, ...]:
        """Leaves, one structure for each run: one backward pass gives every run its gradient."""
        return tuple(
            x.to(device, dtype).expand(runs, *x.shape).clone().requires_grad_() for x in self.scores
        )


class LinearChainProblem(Problem):
    """Emissions [T, K] and transitions [K, K]."""

    def distribution(
        self, scores: tuple[Tensor, ...], events: Tensor | None = None, edges: Tensor | None = None
    ) -> StructuredDistribution:
        emissions, transitions = scores
        if events is not None:
            emissions = emissions + events
        if edges is not None:
            transitions = transitions.unsqueeze(-3) + edges
        return LinearChainCRF(emissions, transitions)


class SemiMarkovProblem(Problem):
    """Emissions [T, K], transitions [K, K] and durations [L, K]."""

    def distribution(
        self, scores: tuple[Tensor, ...], events: Tensor | None = None, edges: Tensor | None = None
    ) -> StructuredDistribution:
        if edges is not None:
            raise ValueError("the neighbours of a token may belong to its own segment")
        return SemiMarkovCRF(*scores, segments=events)


def random_problem(structure: str, length: int, states: int, generator: torch.Generator) -> Problem:
    """Standard normal scores."""
    shapes = [(length, states), (states, states)]
    if structure == "semi-markov":
        shapes.append((LONGEST, states))
    scores = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return PROBLEMS[structure](tuple(scores))


PROBLEMS: dict[str, type[Problem]] = {
    "linear-chain": LinearChainProblem,
    "semi-markov": SemiMarkovProblem,
}
