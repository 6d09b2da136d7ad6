"""Chains to ask about, and the truth of them: forward-backward by numpy, in float64 log space."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Problem:
    emissions: Tensor  # [B, T, K]
    transitions: Tensor  # [K, K], from i to j
    lengths: Tensor  # [B]
    tags: Tensor  # [B, T], a path whose likelihood is asked for

    def leaves(self) -> Problem:
        """The same with scores that can have a gradient."""
        scores = (x.detach().clone().requires_grad_() for x in (self.emissions, self.transitions))
        return Problem(*scores, self.lengths, self.tags)

    def to(self, dtype: torch.dtype) -> Problem:
        return replace(
            self, emissions=self.emissions.to(dtype), transitions=self.transitions.to(dtype)
        )


def random_problem(
    batch: int = 3, length: int = 6, states: int = 4, scale: float = 1.0, seed: int = 0
) -> Problem:
    """Chains of normal scores, all of full length, in float32."""
    generator = torch.Generator().manual_seed(seed)
    return Problem(
        scale * torch.randn(batch, length, states, generator=generator),
        scale * torch.randn(states, states, generator=generator),
        torch.full((batch,), length),
        torch.randint(states, (batch, length), generator=generator),
    )


def identical_chains(count: int = 2000, length: int = 3, states: int = 2) -> Problem:
    one = random_problem(1, length, states)
    return Problem(
        one.emissions.expand(count, -1, -1).clone(),
        one.transitions,
        one.lengths.expand(count).clone(),
        one.tags.expand(count, -1).clone(),
    )


@dataclass(frozen=True)
class Truth:
    """Of each chain; gradients are those of the sum over chains of `log_likelihood`."""

    log_likelihood: Tensor  # [B]
    entropy: Tensor  # [B]
    by_emissions: Tensor  # [B, T, K]
    by_transitions: Tensor  # [K, K]


def truth_of(problem: Problem) -> Truth:
    emissions, transitions = (
        x.detach().double().numpy() for x in (problem.emissions, problem.transitions)
    )
    log_likelihoods, entropies = [], []
    by_emissions, by_transitions = np.zeros(emissions.shape), np.zeros(transitions.shape)
    for index, length in enumerate(problem.lengths.tolist()):
        scores, tags = emissions[index, :length], problem.tags[index, :length].numpy()
        log_z, nodes, edges = _marginals(scores, transitions)
        moves = tags[:-1], tags[1:]
        path = scores[np.arange(length), tags].sum() + transitions[moves].sum()
        log_likelihoods.append(path - log_z)
        mean_score = _weighed(nodes, scores) + _weighed(edges, transitions)
        entropies.append(log_z - mean_score)
        by_emissions[index, :length] = -nodes
        by_emissions[index, np.arange(length), tags] += 1
        by_transitions -= edges
        np.add.at(by_transitions, moves, 1)
    found = np.array(log_likelihoods), np.array(entropies), by_emissions, by_transitions
    return Truth(*map(torch.from_numpy, found))


def _weighed(weights: np.ndarray, scores: np.ndarray) -> float:
    return float(np.where(weights > 0, weights * np.where(weights > 0, scores, 0), 0).sum())


def _marginals(scores: np.ndarray, moves: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Of a chain [n, K]: log Z, marginals of its nodes [n, K], and of moves, summed, [K, K]."""
    edges = np.zeros(moves.shape)
    if len(scores) == 0:
        return 0.0, scores, edges
    forward, backward = scores.copy(), np.zeros(scores.shape)
    for t in range(1, len(scores)):
        forward[t] += _log_sum(forward[t - 1][:, None] + moves, 0)
    for t in range(len(scores) - 1, 0, -1):
        after = moves + scores[t] + backward[t]
        backward[t - 1] = _log_sum(after, 1)
    log_z = _log_sum(forward[-1], 0)
    for t in range(1, len(scores)):
        joint = forward[t - 1][:, None] + moves + scores[t] + backward[t]
        edges += np.exp(joint - log_z)
    return float(log_z), np.exp(forward + backward - log_z), edges


def _log_sum(x: np.ndarray, axis: int) -> np.ndarray:
    largest = x.max(axis, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(x - largest).sum(axis)) + largest.squeeze(axis)
