"""A distribution that is asked, and how its answers are held to what enumeration knows.

An answer is *wrong* if it is NaN or infinite where it should not be, or outside its interval by
more than the tolerance of its dtype and the rounding of the answer itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tests.fuzz.cases import Case
from tests.fuzz.exact import Exact, Interval
from tests.fuzz.parts import pulled_back

# Of answers that are of the size of one. Half precision is computed in float32.
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}


class Wrong(NamedTuple):
    """An answer that is outside its interval."""

    question: str
    index: list[int]
    found: float
    low: float
    high: float

    def __str__(self) -> str:
        bounds = f"{self.low:.9g}..{self.high:.9g}"
        return f"{self.question} {self.index} is {self.found:.9g}, not in {bounds}"


@dataclass(frozen=True)
class Asked:
    """A distribution, and what is known of it."""

    case: Case
    dist: Any
    dtype: torch.dtype  # of its answers
    seed: int

    @property
    def exact(self) -> Exact:
        return self.case.exact

    @property
    def tolerance(self) -> float:
        return TOLERANCE[self.dtype]

    def generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed)

    def flat(self, answer: Tensor, event_dims: int = 0, sample_dims: int = 0) -> Tensor:
        """[*S, N, ...] without its graph, from an answer [*S, *B, ...]."""
        shape = answer.shape
        samples, event = shape[:sample_dims], shape[len(shape) - event_dims :]
        return answer.detach().reshape(*samples, self.exact.num_chains, *event)

    def compare(
        self, question: str, found: Tensor, true: Interval, allowed: Tensor | float
    ) -> Iterator[Wrong]:
        """The first wrong answer, if there is one; `allowed` is how far answers may be off."""
        found, limits = found.double(), torch.finfo(self.dtype)
        forbidden = true.high == -torch.inf
        low, high = (x.clamp(-limits.max, limits.max) for x in true)
        low = low - allowed - 4 * limits.eps * low.abs()
        high = high + allowed + 4 * limits.eps * high.abs()
        inside = (found >= low) & (found <= high) & found.isfinite()
        right = torch.where(forbidden, found == -torch.inf, inside)
        for index in (~right).nonzero()[:1].tolist():
            values = [x.expand(right.shape)[tuple(index)].item() for x in (found, low, high)]
            yield Wrong(question, index, *values)

    def compare_gradients(
        self, question: str, answer: Tensor, by_parts: Interval, allowed: Tensor
    ) -> Iterator[Wrong]:
        """Wrong gradients of answers [*B], given their gradients by parts [N, F].

        Each chain has a weight of its own; `allowed` [N, 1] is how far a gradient may be off.
        """
        example, sizes = self.case.example, self.exact.sizes
        leaves = {name: x for name, x in example.scores.items() if x.requires_grad}
        if not answer.requires_grad:
            return
        weights = 0.5 + torch.rand(self.exact.num_chains, generator=self.generator())
        weighted = (answer * weights.view(answer.shape).to(answer.dtype)).sum()
        grads = torch.autograd.grad(
            weighted, list(leaves.values()), retain_graph=True, materialize_grads=True
        )
        low, high, allowed = (
            pulled_back(x.expand_as(by_parts.low) * weights.unsqueeze(-1), example, sizes)
            for x in (*by_parts, allowed)
        )
        for name, grad in zip(leaves, grads, strict=True):
            size = torch.maximum(low[name].abs(), high[name].abs())
            own = torch.finfo(grad.dtype)  # of the argument, in which its gradient is rounded
            rounding = own.eps * (8 * size + own.tiny)
            true = Interval(low[name], high[name])
            title = f"gradient of {question} by {name}"
            yield from self.compare(title, grad, true, allowed[name] + rounding)

    def finite(self, question: str, answer: Tensor) -> Iterator[Wrong]:
        """Answers that are NaN or infinite."""
        most = torch.full(answer.shape, 1e308, dtype=torch.float64)
        yield from self.compare(question, answer.detach(), Interval(-most, most), 0.0)
