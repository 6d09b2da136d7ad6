"""The oracle of linear chains: every answer of `LinearChainCRF`, by enumeration of all paths.

    score(z) = sum_t emissions[t, z_t] + sum_t transitions[z_t, z_{t+1}] + start[z_1] + end[z_n]

Nothing of `structdist` is used here.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from tests.enumeration import BatchOracle, Outcomes, each_of


class SingleChain(Outcomes):
    """All allowed paths of one chain. Scores are [T, K], [T-1, K, K], [K] and [K]."""

    def __init__(self, emissions, transitions, length, start=None, end=None):
        self.emissions, self.transitions, self.length = emissions, transitions, length
        self.start, self.end = start, end
        num_steps, self.num_states = emissions.shape
        self.num_codes = self.num_states
        super().__init__(all_paths(num_steps, self.num_states, length))

    def score(self, paths: Tensor) -> Tensor:
        score = additive(self.emissions, self.transitions, paths, self.length)
        if self.length > 0 and self.start is not None:
            score = score + self.start[paths[:, 0]]
        if self.length > 0 and self.end is not None:
            score = score + self.end[paths[:, self.length - 1]]
        return score

    def events(self) -> Tensor:
        """[P, T, K]: one-hot, zeros beyond the length."""
        events = torch.nn.functional.one_hot(self.paths, self.num_states).double()
        events[:, self.length :] = 0
        return events

    def edge_marginals(self) -> Tensor:
        events = self.events()
        return torch.einsum("p,pti,ptj->tij", self.probs, events[:, :-1], events[:, 1:])

    def expectation(self, node_values: Tensor, edge_values: Tensor) -> Tensor:
        return (self.probs * additive(node_values, edge_values, self.paths, self.length)).sum()


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


class Oracle(BatchOracle):
    """A batch of chains, with the arguments of `LinearChainCRF`, in float64."""

    def __init__(self, emissions, transitions, lengths=None, *, start=None, end=None):
        self.num_steps, self.num_states = emissions.shape[-2:]
        edges = self._every_edge(transitions, emissions.dim() - 2)
        if lengths is None:
            lengths = torch.full(emissions.shape[:-2], self.num_steps)
        parts = [(emissions, 2), (edges, 3), (lengths, 0), (start, 1), (end, 1)]
        shapes = [x.shape[: x.dim() - dims] for x, dims in parts if x is not None]
        batch_shape = torch.broadcast_shapes(*shapes)
        arguments = zip(*[each_of(*part, batch_shape) for part in parts], strict=True)
        chains = [SingleChain(e, t, int(n), s, f) for e, t, n, s, f in arguments]
        super().__init__(batch_shape, (self.num_steps, self.num_states), chains)

    @property
    def chains(self) -> list[SingleChain]:
        return self.singles

    def _every_edge(self, edges: Tensor, batch_dims: int) -> Tensor:
        """[..., T-1, K, K], whatever the form."""
        if edges.dim() == batch_dims + 3:
            return edges
        return edges.unsqueeze(-3).expand(*edges.shape[:-2], self.num_steps - 1, -1, -1)

    @property
    def edge_marginals(self) -> Tensor:
        return self.stack([chain.edge_marginals() for chain in self.chains])

    def expectation(self, node_values: Tensor | None = None, edge_values: Tensor | None = None):
        if node_values is None:
            node_values = torch.zeros(self.num_steps, self.num_states)
        if edge_values is None:
            edge_values = torch.zeros(self.num_states, self.num_states)
        nodes = each_of(node_values, 2, self.batch_shape)
        edges = self._every_edge(edge_values, len(self.batch_shape))
        parts = zip(self.chains, nodes, each_of(edges, 3, self.batch_shape), strict=True)
        return self.stack([chain.expectation(node, edge) for chain, node, edge in parts])
