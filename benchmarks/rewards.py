"""Rewards f(z) of a whole sequence, one-hot or relaxed, all non-linear in z."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.estimators import Reward

HIDDEN = 16


def network(num_steps: int, num_states: int, generator: torch.Generator) -> Reward:
    """A fixed random network with one hidden layer of tanh."""
    inputs = num_steps * num_states
    first = _normal((inputs, HIDDEN), generator)
    second = _normal((HIDDEN,), generator)
    return lambda z: torch.tanh(z.flatten(-2) @ first.to(z)) @ second.to(z)


def pairwise(num_steps: int, num_states: int, generator: torch.Generator) -> Reward:
    """The square of a sum of interactions between neighbours."""
    weights = _normal((num_steps - 1, num_states, num_states), generator) / num_steps

    def reward(z: Tensor) -> Tensor:
        return (
            torch.einsum("...ti,tij,...tj->...", z[..., :-1, :], weights.to(z), z[..., 1:, :]) ** 2
        )

    return reward


def exponential(num_steps: int, num_states: int, generator: torch.Generator) -> Reward:
    """Exp of a linear function: like a likelihood, a few paths hold most of it."""
    weights = _normal((num_steps, num_states), generator) / 2
    return lambda z: (z * weights.to(z)).sum((-2, -1)).exp()


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


REWARDS: dict[str, Callable[[int, int, torch.Generator], Reward]] = {
    "network": network,
    "pairwise": pairwise,
    "exponential": exponential,
}
