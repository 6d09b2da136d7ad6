"""The oracle: every answer of `LinearChainCRF`, by enumeration of all paths, from the definition.

    score(z) = sum_t emissions[t, z_t] + sum_t transitions[z_t, z_{t+1}] + start[z_1] + end[z_n]

Nothing of `structdist` is used here. Each chain of a batch is done on its own, in float64, with
plain autograd, so that gradients of these answers are an oracle too. Only allowed paths (score
above -inf) are kept: what is forbidden gets a gradient of 0 since it is never touched.

`Oracle` has the names and shapes of `LinearChainCRF`, so one function can ask both.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor


class OracleTopK(NamedTuple):
    paths: Tensor  # [k, *B, T]
    log_probs: Tensor  # [k, *B]


class SingleChain:
    """All allowed paths of one chain. Scores are [T, K], [T-1, K, K], [K] and [K]."""

    def __init__(self, emissions, transitions, length, start=None, end=None):
        self.emissions, self.transitions, self.length = emissions, transitions, length
        self.start, self.end = start, end
        self.num_steps, self.num_states = emissions.shape
        paths = all_paths(self.num_steps, self.num_states, length)
        scores = self.score(paths)
        allowed = scores > -torch.inf
        self.paths = paths[allowed]  # [P, T]
        self.log_probs = scores[allowed] - scores[allowed].logsumexp(0)  # [P]
        self.log_partition = scores[allowed].logsumexp(0)
        self.probs = self.log_probs.exp()

    def score(self, paths: Tensor) -> Tensor:
        """[P]: of paths [P, T]."""
        score = additive(self.emissions, self.transitions, paths, self.length)
        if self.length > 0 and self.start is not None:
            score = score + self.start[paths[:, 0]]
        if self.length > 0 and self.end is not None:
            score = score + self.end[paths[:, self.length - 1]]
        return score

    def log_prob(self, paths: Tensor) -> Tensor:
        return self.score(paths) - self.log_partition

    def events(self) -> Tensor:
        """[P, T, K]: one-hot, zeros beyond the length."""
        events = torch.nn.functional.one_hot(self.paths, self.num_states).double()
        events[:, self.length :] = 0
        return events

    def marginals(self) -> Tensor:
        return torch.einsum("p,ptk->tk", self.probs, self.events())

    def edge_marginals(self) -> Tensor:
        events = self.events()
        return torch.einsum("p,pti,ptj->tij", self.probs, events[:, :-1], events[:, 1:])

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

    def cross_entropy(self, other: SingleChain) -> Tensor:
        return -(self.probs * other.log_prob(self.paths)).sum()

    def expectation(self, node_values: Tensor, edge_values: Tensor) -> Tensor:
        return (self.probs * additive(node_values, edge_values, self.paths, self.length)).sum()

    def topk(self, k: int) -> tuple[Tensor, Tensor]:
        """Paths [k, T] and log probabilities [k]: zeros and -inf where there is no k-th path."""
        log_probs, order = self.log_probs.sort(descending=True)
        missing = max(k - len(order), 0)
        paths = torch.cat([self.paths[order], self.paths.new_zeros(missing, self.num_steps)])
        log_probs = torch.cat([log_probs, log_probs.new_full((missing,), -torch.inf)])
        return paths[:k], log_probs[:k]


def all_paths(num_steps: int, num_states: int, length: int) -> Tensor:
    """[K^n, T]: every path of n steps, zeros beyond."""
    paths = torch.zeros(num_states**length, num_steps, dtype=torch.long)
    for row, path in enumerate(itertools.product(range(num_states), repeat=length)):
        paths[row, :length] = torch.tensor(path, dtype=torch.long)
    return paths


def additive(node_values: Tensor, edge_values: Tensor, paths: Tensor, length: int) -> Tensor:
    """[P]: the sum of values [T, K] and [T-1, K, K] along paths [P, T], up to the length."""
    total = node_values.new_zeros(len(paths))
    for t in range(length):
        total = total + node_values[t, paths[:, t]]
    for t in range(length - 1):
        total = total + edge_values[t, paths[:, t], paths[:, t + 1]]
    return total


class Oracle:
    """A batch of chains, with the arguments of `LinearChainCRF`, in float64."""

    def __init__(self, emissions, transitions, lengths=None, *, start=None, end=None):
        self.num_steps, self.num_states = emissions.shape[-2:]
        edges = self._every_edge(transitions, emissions.dim() - 2)
        if lengths is None:
            lengths = torch.full(emissions.shape[:-2], self.num_steps)
        parts = [(emissions, 2), (edges, 3), (lengths, 0), (start, 1), (end, 1)]
        shapes = [x.shape[: x.dim() - dims] for x, dims in parts if x is not None]
        self.batch_shape = torch.broadcast_shapes(*shapes)
        emissions, edges, lengths, start, end = (self._per_chain(*part) for part in parts)
        self.chains = [
            SingleChain(e.double(), t.double(), int(n), s, f)
            for e, t, n, s, f in zip(emissions, edges, lengths, start, end, strict=True)
        ]

    def _every_edge(self, edges: Tensor, batch_dims: int) -> Tensor:
        """[..., T-1, K, K], whatever the form."""
        if edges.dim() == batch_dims + 3:
            return edges
        return edges.unsqueeze(-3).expand(*edges.shape[:-2], self.num_steps - 1, -1, -1)

    def _per_chain(self, x: Tensor | None, event_dims: int) -> list:
        """One entry for each chain."""
        if x is None:
            return [None] * self.batch_shape.numel()
        event_shape = x.shape[x.dim() - event_dims :]
        expanded = x.double().expand(self.batch_shape + event_shape)
        return [expanded[index] for index in itertools.product(*map(range, self.batch_shape))]

    def _stack(self, answers: list[Tensor]) -> Tensor:
        """[*B, ...] from one answer [...] for each chain."""
        return torch.stack(answers).reshape(self.batch_shape + answers[0].shape)

    @property
    def log_partition(self) -> Tensor:
        return self._stack([c.log_partition for c in self.chains])

    @property
    def marginals(self) -> Tensor:
        return self._stack([c.marginals() for c in self.chains])

    @property
    def mean(self) -> Tensor:
        return self.marginals

    @property
    def variance(self) -> Tensor:
        """Of each entry of the one-hot event, as the mean square minus the squared mean."""
        mean_square = [torch.einsum("p,ptk->tk", c.probs, c.events() ** 2) for c in self.chains]
        return self._stack(mean_square) - self.marginals**2

    @property
    def edge_marginals(self) -> Tensor:
        return self._stack([c.edge_marginals() for c in self.chains])

    @property
    def argmax(self) -> Tensor:
        return self._stack([c.paths[c.log_probs.argmax()] for c in self.chains])

    @property
    def mode(self) -> Tensor:
        return self._stack([c.events()[c.log_probs.argmax()] for c in self.chains])

    def entropy(self) -> Tensor:
        return self._stack([c.entropy() for c in self.chains])

    def renyi_entropy(self, order: float) -> Tensor:
        return self._stack([c.renyi_entropy(order) for c in self.chains])

    def cross_entropy(self, other: Oracle) -> Tensor:
        pairs = zip(self.chains, other.chains, strict=True)
        return self._stack([p.cross_entropy(q) for p, q in pairs])

    def kl(self, other: Oracle) -> Tensor:
        return self.cross_entropy(other) - self.entropy()

    def expectation(self, node_values: Tensor | None = None, edge_values: Tensor | None = None):
        num_states = self.num_states
        if node_values is None:
            node_values = torch.zeros(self.num_steps, num_states)
        if edge_values is None:
            edge_values = torch.zeros(num_states, num_states)
        nodes = self._per_chain(node_values, 2)
        edges = self._per_chain(self._every_edge(edge_values, len(self.batch_shape)), 3)
        parts = zip(self.chains, nodes, edges, strict=True)
        return self._stack([c.expectation(node, edge) for c, node, edge in parts])

    def topk(self, k: int) -> OracleTopK:
        paths, log_probs = zip(*[c.topk(k) for c in self.chains], strict=True)
        return OracleTopK(self._stack(paths).movedim(-2, 0), self._stack(log_probs).movedim(-1, 0))

    def log_prob(self, paths: Tensor) -> Tensor:
        """[*S, *B]: of integer paths [*S, *B, T]."""
        sample_shape = paths.shape[: paths.dim() - 1 - len(self.batch_shape)]
        flat = paths.reshape(sample_shape.numel(), len(self.chains), self.num_steps)
        answers = [c.log_prob(flat[:, n]) for n, c in enumerate(self.chains)]
        return torch.stack(answers, -1).reshape(sample_shape + self.batch_shape)
