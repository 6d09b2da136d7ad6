"""Answers that are computed once for each state of a distribution."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from structdist import ops

if TYPE_CHECKING:
    from structdist.compat.plugin import TorchStructPlugin

Self = TypeVar("Self", bound="TorchStructPlugin")


class State(NamedTuple):
    """What may change during the life of a distribution, and its answers with it."""

    version: int | None  # of the log potentials, in place; inference tensors have none
    requires_grad: bool
    backend: str | None


class Computed(NamedTuple):
    """The structure that answers for a distribution in some state, and its answers so far."""

    state: State | None
    crf: Any  # a StructuredDistribution
    answers: dict[str, Tensor]  # by the name of the property


def computed_once(compute: Callable[[Self], Tensor]) -> Callable[[Self], Tensor]:
    """Keep an answer that never has a graph, for as long as the distribution stays in its state.

    What is handed out is a copy: callers may change it in place, and outside inference mode it is
    an ordinary tensor, wherever the answer was computed.
    """

    @wraps(compute)
    def answer(self: Self) -> Tensor:
        if ops.numbers_are_hidden():
            return compute(self)
        answers = self._computed().answers
        if compute.__name__ not in answers:
            answers[compute.__name__] = compute(self)
        return answers[compute.__name__].clone()

    return answer


def computed_once_unless_graph(compute: Callable[[Self], Tensor]) -> Callable[[Self], Tensor]:
    """Keep an answer as `computed_once` does, but for one that is to have a graph.

    That one is made anew each time, from the forward pass that all answers share, so that every
    caller may run, and free, a graph of their own.
    """
    without_graph = computed_once(compute)

    @wraps(compute)
    def answer(self: Self) -> Tensor:
        wants_graph = torch.is_grad_enabled() and self.log_potentials.requires_grad
        return compute(self) if wants_graph else without_graph(self)

    return answer
