"""Real-valued answers, as functions that both a distribution and its oracle understand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import kl_divergence

from tests.enumeration import BatchOracle
from tests.structures.structure import Ask, paths_over_batch


def common_quantities(all_paths: Callable[[torch.Size], Tensor]) -> dict[str, Ask]:
    """What every structure answers, given a function that lists paths [P, T] of an event shape."""

    def path_probs(d: Any) -> Tensor:
        """Probabilities rather than their logs, which may be -inf."""
        return d.log_prob(paths_over_batch(all_paths(d.event_shape), d.batch_shape)).exp()

    return {
        "log_partition": lambda d: d.log_partition,
        "log_prob": path_probs,
        "marginals": lambda d: d.marginals,
        "mean": lambda d: d.mean,
        "variance": lambda d: d.variance,
        "entropy": lambda d: d.entropy(),
        "renyi_0": lambda d: d.renyi_entropy(0),
        "renyi_half": lambda d: d.renyi_entropy(0.5),
        "renyi_1": lambda d: d.renyi_entropy(1),
        "renyi_2": lambda d: d.renyi_entropy(2.0),
        "renyi_inf": lambda d: d.renyi_entropy(math.inf),
        "topk": best_probs,
    }


def best_probs(d: Any) -> Tensor:
    """Of the three best paths; as probabilities, since there may be fewer than three."""
    return d.topk(3).log_probs.exp()


def cross_entropy(p: Any, q: Any) -> Tensor:
    return p.cross_entropy(q)


def kl(p: Any, q: Any) -> Tensor:
    return p.kl(q) if isinstance(p, BatchOracle) else kl_divergence(p, q)


PAIR_QUANTITIES: dict[str, Callable[[Any, Any], Tensor]] = {
    "cross_entropy": cross_entropy,
    "kl": kl,
}
