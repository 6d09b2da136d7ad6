"""Every real-valued answer of a chain, as a function that both a CRF and the oracle understand."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import kl_divergence

from structdist import LinearChainCRF
from tests.chains import Example, seeded
from tests.oracle import Oracle, all_paths

Answerer = LinearChainCRF | Oracle


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64)


def size(d: Answerer) -> tuple[int, int]:
    """T and K."""
    return d.event_shape if isinstance(d, LinearChainCRF) else (d.num_steps, d.num_states)


def some_paths(d: Answerer) -> Tensor:
    """[K^T, *B, T]: all paths (a shorter chain sees each several times)."""
    num_steps, num_states = size(d)
    paths = all_paths(num_steps, num_states, num_steps)
    ones = (1,) * len(d.batch_shape)
    return paths.view(-1, *ones, num_steps).expand(-1, *d.batch_shape, -1)


def path_probs(d: Answerer) -> Tensor:
    """Probabilities rather than their logs, which may be -inf."""
    return d.log_prob(some_paths(d)).exp()


def node_expectation(d: Answerer) -> Tensor:
    return d.expectation(normal(*d.batch_shape, *size(d)))


def edge_expectation(d: Answerer) -> Tensor:
    num_steps, num_states = size(d)
    return d.expectation(edge_values=normal(*d.batch_shape, num_steps - 1, num_states, num_states))


def shared_expectation(d: Answerer) -> Tensor:
    num_steps, num_states = size(d)
    nodes, edges = normal(num_steps, num_states), normal(num_states, num_states, seed=1)
    return d.expectation(nodes, edges)


def best_log_probs(d: Answerer) -> Tensor:
    """Of the three best paths; as probabilities, since there may be fewer than three."""
    return d.topk(3).log_probs.exp()


QUANTITIES: dict[str, Callable[[Answerer], Tensor]] = {
    "log_partition": lambda d: d.log_partition,
    "log_prob": path_probs,
    "marginals": lambda d: d.marginals,
    "mean": lambda d: d.mean,
    "variance": lambda d: d.variance,
    "edge_marginals": lambda d: d.edge_marginals,
    "entropy": lambda d: d.entropy(),
    "renyi_0": lambda d: d.renyi_entropy(0),
    "renyi_half": lambda d: d.renyi_entropy(0.5),
    "renyi_1": lambda d: d.renyi_entropy(1),
    "renyi_2": lambda d: d.renyi_entropy(2.0),
    "renyi_inf": lambda d: d.renyi_entropy(math.inf),
    "node_expectation": node_expectation,
    "edge_expectation": edge_expectation,
    "shared_expectation": shared_expectation,
    "topk": best_log_probs,
}


def cross_entropy(p: Answerer, q: Answerer) -> Tensor:
    return p.cross_entropy(q)


def kl(p: Answerer, q: Answerer) -> Tensor:
    return p.kl(q) if isinstance(p, Oracle) else kl_divergence(p, q)


PAIR_QUANTITIES = {"cross_entropy": cross_entropy, "kl": kl}


def rescored(example: Example, seed: int = 99) -> Example:
    """Another chain over the same paths: other scores, the same ones forbidden."""
    moved = [x + normal(*x.shape, seed=seed + n) for n, x in enumerate(example.scores.values())]
    return example.with_scores(*moved)
