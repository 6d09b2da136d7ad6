"""Enumeration: every answer of a structured distribution, from the list of all its outcomes.

Nothing of `structdist` is used here. Each structure of a batch is done on its own, in float64, with
plain autograd, so that gradients of these answers are an oracle too. Only allowed outcomes (score
above -inf) are kept: what is forbidden gets a gradient of 0 since it is never touched.

`BatchOracle` has the names and shapes of `StructuredDistribution`, so one function can ask both. A
structure adds how its outcomes are listed and scored, and what has names of its own.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class OracleTopK(NamedTuple):
    paths: Tensor  # [k, *B, T]
    log_probs: Tensor  # [k, *B]


class Outcomes(ABC):
    """All allowed outcomes of one structure, as integer paths. Made from those that it has."""

    num_codes: int  # the integers of a path lie in range(num_codes)

    def __init__(self, paths: Tensor) -> None:
        self.num_steps, self.num_outcomes = paths.shape[1], len(paths)
        scores = self.score(paths)
        allowed = scores > -torch.inf
        self.paths = paths[allowed]  # [P, T]
        self.log_probs = scores[allowed] - scores[allowed].logsumexp(0)  # [P]
        self.log_partition = scores[allowed].logsumexp(0)
        self.probs = self.log_probs.exp()

    @abstractmethod
    def score(self, paths: Tensor) -> Tensor:
        """[P]: of paths [P, T]; -inf where something forbids them, or they are none."""

    @abstractmethod
    def events(self) -> Tensor:
        """[P, *event_shape]: the allowed outcomes, zeros beyond the length."""

    def log_prob(self, paths: Tensor) -> Tensor:
        return self.score(paths) - self.log_partition

    def marginals(self) -> Tensor:
        return torch.einsum("p,p...->...", self.probs, self.events())

    def mean_square(self) -> Tensor:
        return torch.einsum("p,p...->...", self.probs, self.events() ** 2)

    def entropy(self) -> Tensor:
        return -(self.probs * self.log_probs).sum()

    def renyi_entropy(self, order: float) -> Tensor:
        if order == 0:
            return self.log_probs.new_tensor(math.log(len(self.paths)))
        if order == 1:
            return self.entropy()
        if math.isinf(order):
            return -self.log_probs.max()
        return (order * self.log_probs).logsumexp(0) / (1 - order)

    def cross_entropy(self, other: Outcomes) -> Tensor:
        return -(self.probs * other.log_prob(self.paths)).sum()

    def topk(self, k: int) -> tuple[Tensor, Tensor]:
        """Paths [k, T] and log probabilities [k]: zeros and -inf where there is no k-th path."""
        log_probs, order = self.log_probs.sort(descending=True)
        missing = max(k - len(order), 0)
        paths = torch.cat([self.paths[order], self.paths.new_zeros(missing, self.num_steps)])
        log_probs = torch.cat([log_probs, log_probs.new_full((missing,), -torch.inf)])
        return paths[:k], log_probs[:k]


def each_of(x: Tensor | None, event_dims: int, batch_shape: torch.Size) -> list:
    """An argument that broadcasts over the batch, as one float64 entry for each structure."""
    if x is None:
        return [None] * batch_shape.numel()
    expanded = x.double().expand(batch_shape + x.shape[x.dim() - event_dims :])
    return [expanded[index] for index in itertools.product(*map(range, batch_shape))]


class BatchOracle:
    """The answers of a batch of structures, each of them enumerated."""

    def __init__(
        self, batch_shape: torch.Size, event_shape: tuple, singles: Sequence[Outcomes]
    ) -> None:
        self.batch_shape, self.event_shape = batch_shape, torch.Size(event_shape)
        self.singles = list(singles)

    def stack(self, answers: Sequence[Tensor]) -> Tensor:
        """[*B, ...] from one answer [...] for each structure."""
        return torch.stack(list(answers)).reshape(self.batch_shape + answers[0].shape)

    @property
    def log_partition(self) -> Tensor:
        return self.stack([single.log_partition for single in self.singles])

    @property
    def log_num_outcomes(self) -> Tensor:
        """[*B]: of all outcomes, those that are forbidden included."""
        counts = [float(single.num_outcomes) for single in self.singles]
        return torch.tensor(counts, dtype=torch.float64).log().reshape(self.batch_shape)

    @property
    def marginals(self) -> Tensor:
        return self.stack([single.marginals() for single in self.singles])

    @property
    def mean(self) -> Tensor:
        return self.marginals

    @property
    def variance(self) -> Tensor:
        """Of each entry of the event, as the mean square minus the squared mean."""
        return self.stack([single.mean_square() for single in self.singles]) - self.marginals**2

    @property
    def argmax(self) -> Tensor:
        return self.stack([single.paths[single.log_probs.argmax()] for single in self.singles])

    @property
    def mode(self) -> Tensor:
        return self.stack([single.events()[single.log_probs.argmax()] for single in self.singles])

    def entropy(self) -> Tensor:
        return self.stack([single.entropy() for single in self.singles])

    def renyi_entropy(self, order: float) -> Tensor:
        return self.stack([single.renyi_entropy(order) for single in self.singles])

    def cross_entropy(self, other: BatchOracle) -> Tensor:
        pairs = zip(self.singles, other.singles, strict=True)
        return self.stack([p.cross_entropy(q) for p, q in pairs])

    def kl(self, other: BatchOracle) -> Tensor:
        return self.cross_entropy(other) - self.entropy()

    def topk(self, k: int) -> OracleTopK:
        paths, log_probs = zip(*[single.topk(k) for single in self.singles], strict=True)
        return OracleTopK(self.stack(paths).movedim(-2, 0), self.stack(log_probs).movedim(-1, 0))

    def log_prob(self, paths: Tensor) -> Tensor:
        """[*S, *B]: of integer paths [*S, *B, T]."""
        sample_shape = paths.shape[: paths.dim() - 1 - len(self.batch_shape)]
        flat = paths.reshape(sample_shape.numel(), len(self.singles), paths.shape[-1])
        answers = [single.log_prob(flat[:, n]) for n, single in enumerate(self.singles)]
        return torch.stack(answers, -1).reshape(sample_shape + self.batch_shape)
