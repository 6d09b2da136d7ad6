"""Rewards f(z) of whole sequences, hard or relaxed; of most the mean is known at every length.

The mean of f is a function of log Z where f is made of additive functions of the outcome,
A(z) = <w, z>: with a(s) = log Z(scores + s w) - log Z(scores), E[exp A] = exp a(1), E[A] = a'(0)
and E[A^2] = a''(0) + a'(0)^2. So is, in a linear chain, the mean of a sum of any functions of two
neighbours, since those are tables for hard outcomes. Weights shrink with the square root of the
length, so that A has about the same spread at every length.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

LogPartition = Callable[..., Tensor]  # of values `events=` or `edges=` added to the scores
HIDDEN = 8


@dataclass(frozen=True)
class Reward(ABC):
    event_shape: torch.Size  # [T, K] or [T, L, K]

    @classmethod
    @abstractmethod
    def random(cls, shape: torch.Size, generator: torch.Generator) -> Reward:
        """With random weights, for events of a shape."""

    @abstractmethod
    def __call__(self, events: Tensor) -> Tensor:
        """[...]: of events [..., *event_shape]."""

    def mean(self, log_partition: LogPartition) -> Tensor | None:
        """E[f], with a graph, by dynamic programming; None where there is no such program."""
        return None

    def _flat(self, events: Tensor) -> Tensor:
        return events.flatten(events.dim() - len(self.event_shape))


@dataclass(frozen=True)
class Linear(Reward):
    """A sum over steps: what a decoder pays that predicts each word from its own state alone."""

    weights: Tensor  # [*event_shape]

    @classmethod
    def random(cls, shape: torch.Size, generator: torch.Generator) -> Reward:
        return cls(shape, _normal(generator, *shape, spread=_shrunk(shape)))

    def __call__(self, events: Tensor) -> Tensor:
        return self._flat(events) @ self.weights.flatten().to(events)

    def mean(self, log_partition: LogPartition) -> Tensor:
        first, _ = _moments(log_partition, self.weights.unsqueeze(0))
        return first[0]


@dataclass(frozen=True)
class Square(Reward):
    """A sum of squares of additive functions: every step interacts with every other."""

    weights: Tensor  # [H, *event_shape]

    @classmethod
    def random(cls, shape: torch.Size, generator: torch.Generator) -> Reward:
        return cls(shape, _normal(generator, HIDDEN, *shape, spread=_shrunk(shape)))

    def __call__(self, events: Tensor) -> Tensor:
        return (self._flat(events) @ self.weights.flatten(1).t().to(events)).square().sum(-1)

    def mean(self, log_partition: LogPartition) -> Tensor:
        return _moments(log_partition, self.weights)[1].sum()


@dataclass(frozen=True)
class Exponential(Reward):
    """Exp of an additive function: like a likelihood, a few paths hold most of it."""

    weights: Tensor  # [*event_shape]

    @classmethod
    def random(cls, shape: torch.Size, generator: torch.Generator) -> Reward:
        return cls(shape, _normal(generator, *shape, spread=2 * _shrunk(shape)))

    def __call__(self, events: Tensor) -> Tensor:
        return (self._flat(events) @ self.weights.flatten().to(events)).exp()

    def mean(self, log_partition: LogPartition) -> Tensor:
        return (log_partition(events=self.weights) - log_partition()).exp()


@dataclass(frozen=True)
class Neighbours(Reward):
    """A network on each step and the next, with a readout of its own: a decoder that looks back."""

    first: Tensor  # [F, H], F being the size of a step of an event
    second: Tensor  # [F, H]
    readout: Tensor  # [T-1, H]

    @classmethod
    def random(cls, shape: torch.Size, generator: torch.Generator) -> Reward:
        first, second = (_normal(generator, shape[1:].numel(), HIDDEN) for _ in range(2))
        readout = _normal(generator, shape[0] - 1, HIDDEN, spread=_shrunk(shape))
        return cls(shape, first, second, readout)

    def __call__(self, events: Tensor) -> Tensor:
        steps = events.flatten(events.dim() - len(self.event_shape) + 1)  # [..., T, F]
        before, after = steps @ self.first.to(events), steps @ self.second.to(events)
        hidden = torch.tanh(before[..., :-1, :] + after[..., 1:, :])  # [..., T-1, H]
        return hidden.flatten(-2) @ self.readout.flatten().to(events)

    def mean(self, log_partition: LogPartition) -> Tensor | None:
        if len(self.event_shape) > 2:
            return None
        hidden = torch.tanh(self.first.unsqueeze(1) + self.second)  # [K, K, H] of one-hot steps
        table = torch.einsum("ijh,th->tij", hidden, self.readout)
        size = torch.zeros((), dtype=torch.float64, requires_grad=True)
        tilted = log_partition(edges=size * table)
        return torch.autograd.grad(tilted, size, create_graph=True)[0]


@dataclass(frozen=True)
class Network(Reward):
    """A network on the whole sequence at once."""

    first: Tensor  # [T F, H]
    readout: Tensor  # [H]

    @classmethod
    def random(cls, shape: torch.Size, generator: torch.Generator) -> Reward:
        first = _normal(generator, shape.numel(), HIDDEN, spread=2 * _shrunk(shape))
        return cls(shape, first, _normal(generator, HIDDEN))

    def __call__(self, events: Tensor) -> Tensor:
        return torch.tanh(self._flat(events) @ self.first.to(events)) @ self.readout.to(events)


def _moments(log_partition: LogPartition, weights: Tensor) -> tuple[Tensor, Tensor]:
    """E[A] and E[A^2], each [H], of additive functions with weights [H, *event_shape]."""
    sizes = torch.zeros(len(weights), dtype=torch.float64, requires_grad=True)
    values = sizes.view(-1, *[1] * (weights.dim() - 1)) * weights
    (first,) = torch.autograd.grad(log_partition(events=values).sum(), sizes, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), sizes, create_graph=True)
    return first, second + first.square()


def _normal(generator: torch.Generator, *shape: int, spread: float = 1.0) -> Tensor:
    return spread * torch.randn(shape, generator=generator, dtype=torch.float64)


def _shrunk(event_shape: torch.Size) -> float:
    return 1 / math.sqrt(event_shape[0])


FUNCTIONS: dict[str, type[Reward]] = {
    "linear": Linear,
    "neighbours": Neighbours,
    "square": Square,
    "exponential": Exponential,
    "network": Network,
}
