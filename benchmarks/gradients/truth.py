"""The gradient that estimates are held to: exact where it can be, else with its own error."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.gradients.problems import Problem
from benchmarks.gradients.rewards import Reward
from structdist.estimators import Estimator, estimator
from structdist.ops import use_backend

MOST_PATHS = 10_000  # that are enumerated
REFERENCE = "muprop"  # unbiased, and of little variance where the reward is nearly linear
REFERENCE_RUNS, REFERENCE_SAMPLES = 50, 1_000


@dataclass(frozen=True)
class Truth:
    gradient: Tensor  # [D], of E[f(z)] by all scores
    mean_reward: float
    source: str  # "dynamic programming", "enumeration" or "reference"
    error: float = 0.0  # of a reference: the root of its mean squared error, over |gradient|


def find_truth(problem: Problem, reward: Reward, generator: torch.Generator) -> Truth:
    """By a dynamic program if there is one, by enumeration of few paths, else by many draws."""
    return (
        by_dynamic_programming(problem, reward)
        or by_enumeration(problem, reward)
        or by_reference(problem, reward, generator)
    )


def by_dynamic_programming(problem: Problem, reward: Reward) -> Truth | None:
    """In float64, by autograd through the textbook recurrences."""
    leaves = tuple(x.clone().requires_grad_() for x in problem.scores)
    with use_backend("reference"):
        mean = reward.mean(lambda **values: problem.distribution(leaves, **values).log_partition)
        if mean is None:
            return None
        return Truth(_flat(torch.autograd.grad(mean, leaves)), mean.item(), "dynamic programming")


def by_enumeration(problem: Problem, reward: Reward) -> Truth | None:
    outcomes = problem.distribution(problem.scores).renyi_entropy(0).exp().item()
    if outcomes > MOST_PATHS + 0.5:
        return None
    exact = estimator("exact", max_outcomes=MOST_PATHS)
    leaves = problem.copies(1, torch.float64, torch.device("cpu"))
    surrogate = exact.estimate(problem.distribution(leaves), reward).surrogate
    return Truth(_flat(torch.autograd.grad(surrogate, leaves)), surrogate.item(), "enumeration")


def by_reference(problem: Problem, reward: Reward, generator: torch.Generator) -> Truth:
    """The mean of many runs of an unbiased estimator."""
    reference = estimator(REFERENCE, num_samples=REFERENCE_SAMPLES)
    runs, rewards = [], []
    for _ in range(REFERENCE_RUNS):
        gradients, mean = estimates(reference, problem, reward, 1, generator)
        runs.append(gradients.double())
        rewards.append(mean)
    found = torch.cat(runs)
    error = (found.var(0).sum() / len(found)).sqrt() / found.mean(0).norm()
    mean_reward = sum(rewards) / len(rewards)
    return Truth(found.mean(0), mean_reward, "reference", error.item())


def estimates(
    estimator: Estimator,
    problem: Problem,
    reward: Reward,
    runs: int,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, float]:
    """Gradients [N, D] of independent runs, one structure of a batch each, and the mean reward."""
    leaves = problem.copies(runs, dtype, generator.device)
    surrogate = estimator.estimate(
        problem.distribution(leaves), reward, generator=generator
    ).surrogate
    found = torch.autograd.grad(surrogate * runs, leaves, materialize_grads=True)
    return torch.cat([x.flatten(1) for x in found], 1), surrogate.item()


def _flat(gradients: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([x.flatten() for x in gradients])
