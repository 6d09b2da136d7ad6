"""Estimators of the gradient of E[f(z)] with respect to a chain's scores, many runs at a time.

One run is one batch item: the chain is copied `runs` times as leaves of their own, so one backward
pass gives every run's gradient. Each run averages over `samples` draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from benchmarks.ours import whole_chains
from structdist import LinearChainCRF
from structdist.ops import reference

Reward = Callable[[Tensor], Tensor]  # [..., T, K] -> [...]


@dataclass(frozen=True)
class Target:
    """A small chain and a reward, with what enumeration knows about them."""

    emissions: Tensor  # [T, K]
    transitions: Tensor  # [K, K]
    reward: Reward
    gradient: Tensor  # [T K + K K]: of E[f(z)], emissions first
    mean_reward: float
    best_constant: float  # the constant baseline of least variance

    def copies(self, runs: int) -> tuple[Tensor, Tensor]:
        emissions = self.emissions.expand(runs, -1, -1).clone().requires_grad_()
        transitions = self.transitions.expand(runs, -1, -1).clone().requires_grad_()
        return emissions, transitions


def enumerate_target(emissions: Tensor, transitions: Tensor, reward: Reward) -> Target:
    """Everything exact, by a sum over all K^T paths.

    The variance of (f - c) s, s being the score function, is least at c = E[f |s|^2] / E[|s|^2].
    """
    num_steps, num_states = emissions.shape
    leaves = [x.detach().clone().requires_grad_() for x in (emissions, transitions)]
    paths = reference.enumerate_paths(num_steps, num_states, emissions.device)
    chain = whole_chains(leaves[0].unsqueeze(0), leaves[1])
    log_probs = reference.path_scores(chain, paths.unsqueeze(1))[:, 0].log_softmax(0)  # [K^T]
    events = one_hot(paths, num_states).to(emissions.dtype)  # [K^T, T, K]
    rewards = reward(events)
    mean = (log_probs.exp() * rewards).sum()
    gradient = torch.autograd.grad(mean, leaves)
    weights = log_probs.detach().exp()
    weights = weights * score_functions(events, weights).square().sum(1)
    best_constant = (weights * rewards).sum() / weights.sum()
    return Target(
        leaves[0].detach(),
        leaves[1].detach(),
        reward,
        torch.cat([g.flatten() for g in gradient]),
        mean.item(),
        best_constant.item(),
    )


def score_functions(events: Tensor, probabilities: Tensor) -> Tensor:
    """[P, T K + K K]: gradient of log p of each event [P, T, K]: its counts minus their mean."""
    moves = torch.einsum("pti,ptj->pij", events[:, :-1], events[:, 1:])
    counts = torch.cat([events.flatten(1), moves.flatten(1)], 1)
    return counts - probabilities @ counts


@dataclass(frozen=True)
class Setting:
    runs: int
    samples: int
    temperature: float | None  # None for estimators that have none
    constant: float  # baseline
    generator: torch.Generator


Estimator = Callable[[Target, Setting], Tensor]  # -> [runs, T K + K K]


def _gradients(value: Tensor, leaves: tuple[Tensor, Tensor]) -> Tensor:
    """Per run, from values [samples, runs]."""
    gradients = torch.autograd.grad(value.mean(0).sum(), leaves)
    return torch.cat([g.flatten(1) for g in gradients], 1)


def _pathwise(method: str, straight_through: bool) -> Estimator:
    def estimator(target: Target, setting: Setting) -> Tensor:
        leaves = target.copies(setting.runs)
        sample = getattr(LinearChainCRF(*leaves), method)(
            (setting.samples,),
            temperature=setting.temperature,
            straight_through=straight_through,
            generator=setting.generator,
        )
        return _gradients(target.reward(sample), leaves)

    return estimator


def _score_function(baseline: Callable[[Tensor, Target, Setting], Tensor | float]) -> Estimator:
    def estimator(target: Target, setting: Setting) -> Tensor:
        leaves = target.copies(setting.runs)
        chain = LinearChainCRF(*leaves)
        sample = chain.sample((setting.samples,), generator=setting.generator)
        rewards = target.reward(sample)  # [samples, runs]
        signal = rewards - baseline(rewards, target, setting)
        return _gradients(signal.detach() * chain.log_prob(sample), leaves)

    return estimator


def others_mean(rewards: Tensor) -> Tensor:
    """Of each sample: the mean reward of the other samples of its run."""
    return (rewards.sum(0) - rewards) / (len(rewards) - 1)


PATHWISE: dict[str, Estimator] = {
    "Gumbel-CRF": _pathwise("rsample", straight_through=False),
    "Gumbel-CRF-ST": _pathwise("rsample", straight_through=True),
    "PM-MRF": _pathwise("perturb_and_map", straight_through=False),
    "PM-MRF-ST": _pathwise("perturb_and_map", straight_through=True),
}
SCORE_FUNCTION: dict[str, Estimator] = {
    "REINFORCE": _score_function(lambda f, target, setting: 0.0),
    "REINFORCE-C": _score_function(lambda f, target, setting: setting.constant),
    "REINFORCE-MS": _score_function(lambda f, target, setting: others_mean(f)),
    "REINFORCE-MS-C": _score_function(
        lambda f, target, setting: others_mean(f) + setting.constant - target.mean_reward
    ),
}
ESTIMATORS = {**PATHWISE, **SCORE_FUNCTION}
NEEDS_TWO_SAMPLES = ("REINFORCE-MS", "REINFORCE-MS-C")
