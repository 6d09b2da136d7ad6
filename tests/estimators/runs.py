"""Many independent runs of an estimator at a time, and the exact gradient by enumeration.

One run is one structure of a batch of copies, each with scores of its own, so that one backward
pass gives the gradient of every run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from structdist.estimators import Estimator, Reward
from tests.structures.structure import BaseExample, Structure, normal, seeded


def tanh(event_shape: torch.Size) -> Reward:
    """A fixed network with one hidden layer: neither linear nor quadratic."""
    weights = normal(event_shape.numel(), 6, seed=5)
    return lambda z: torch.tanh(flat(z, event_shape) @ weights.to(z)).sum(-1)


def linear(event_shape: torch.Size) -> Reward:
    weights = normal(event_shape.numel(), seed=6)
    return lambda z: flat(z, event_shape) @ weights.to(z)


def quadratic(event_shape: torch.Size) -> Reward:
    weights = normal(event_shape.numel(), event_shape.numel(), seed=7)
    return lambda z: ((flat(z, event_shape) @ weights.to(z)) * flat(z, event_shape)).sum(-1)


def flat(events: Tensor, event_shape: torch.Size) -> Tensor:
    return events.flatten(events.dim() - len(event_shape))


@dataclass(frozen=True)
class Target:
    """One structure, a reward, and the gradient of its mean."""

    example: BaseExample  # without a batch
    reward: Reward
    gradient: Tensor  # [D]: by all scores

    def gradients(self, estimator: Estimator, num_runs: int, seed: int = 0) -> Tensor:
        """[N, D]: of so many runs."""
        scores = self.example.scores.values()
        copies = self.example.with_scores(*[x.expand(num_runs, *x.shape) for x in scores]).leaves()
        estimate = estimator.estimate(copies.crf(), self.reward, generator=seeded(seed))
        found = torch.autograd.grad(
            estimate.surrogate * num_runs, list(copies.scores.values()), materialize_grads=True
        )
        return torch.cat([x.flatten(1) for x in found], 1)


def target(example: BaseExample, make_reward: Callable[[torch.Size], Reward]) -> Target:
    """Of an example without a batch, by enumeration of its outcomes."""
    example = example.leaves()
    (outcomes,) = example.oracle().singles
    reward = make_reward(example.crf().event_shape)
    mean = (outcomes.probs * reward(outcomes.events().unsqueeze(1))[:, 0]).sum()
    found = torch.autograd.grad(mean, list(example.scores.values()), materialize_grads=True)
    return Target(example, reward, torch.cat([x.flatten() for x in found]))


def single(structure: Structure, num_steps: int = 3, seed: int = 1) -> BaseExample:
    return structure.random("single", num_steps=num_steps, lengths=None, seed=seed)


def z_scores(runs: Tensor, exact: Tensor) -> Tensor:
    """[D]: the distance of a mean over runs [N, D] from the truth, in standard errors.

    Coordinates whose runs do not differ but for rounding count by their distance itself.
    """
    error = runs.std(0) / len(runs) ** 0.5
    distance = (runs.mean(0) - exact).abs()
    return distance / error.clamp(min=1e-9)


def relative_bias(runs: Tensor, exact: Tensor) -> float:
    return ((runs.mean(0) - exact).norm() / exact.norm()).item()
