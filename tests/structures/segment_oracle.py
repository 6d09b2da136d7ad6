"""The oracle of semi-Markov chains: every answer, by enumeration of all segmentations.

    score(z) = sum over segments (t, l, k) of durations[l-1, k] + segments[t, l-1, k]
                                              + emissions[t, k] + ... + emissions[t+l-1, k]
               + sum over neighbours of transitions[i, j] + start[first label] + end[last label]

Nothing of `structdist` is used here.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from tests.enumeration import BatchOracle, Outcomes, each_of

Segment = tuple[int, int, int]  # first step, length, label


@functools.cache
def segmentations(length: int, longest: int, num_labels: int) -> list[tuple[Segment, ...]]:
    """Every way to tile a chain: any segment that ends it, after any tiling of what is before."""
    if length == 0:
        return [()]
    return [
        (*before, (length - size, size, label))
        for size in range(1, min(longest, length) + 1)
        for before in segmentations(length - size, longest, num_labels)
        for label in range(num_labels)
    ]


def path_of(segmentation: tuple[Segment, ...], num_steps: int, num_labels: int) -> list[int]:
    """At each step the label k where a segment begins, and K + k where it goes on."""
    path = [0] * num_steps
    for first, size, label in segmentation:
        path[first : first + size] = [label] + [label + num_labels] * (size - 1)
    return path


def all_segmentations(num_steps: int, longest: int, num_labels: int, length: int) -> Tensor:
    """[P, T]: the paths of a chain of some length, zeros beyond."""
    found = segmentations(length, longest, num_labels)
    return torch.tensor([path_of(z, num_steps, num_labels) for z in found])


class SingleSegmentation(Outcomes):
    """All allowed segmentations of one chain.

    Scores are [T, K], [T-1, K, K] and, with durations among them, [T, L, K]; then [K] and [K].
    """

    def __init__(self, emissions, transitions, segments, length, start=None, end=None) -> None:
        self.parts = emissions, transitions, segments
        self.start, self.end, self.length = start, end, length
        num_steps, self.longest, self.num_labels = self.event_shape = segments.shape
        self.num_codes = 2 * self.num_labels
        found = segmentations(length, self.longest, self.num_labels)
        self._by_path = {tuple(path_of(z, num_steps, self.num_labels)[:length]): z for z in found}
        super().__init__(all_segmentations(num_steps, self.longest, self.num_labels, length))

    def _segmentations(self, paths: Tensor) -> list[tuple[Segment, ...] | None]:
        return [self._by_path.get(tuple(path[: self.length])) for path in paths.tolist()]

    def score(self, paths: Tensor) -> Tensor:
        total = self.additive(*self.parts, paths)
        for scores, place in ((self.start, 0), (self.end, -1)):
            found = [z and z[place][2] for z in self._segmentations(paths)]
            rows = [row for row, label in enumerate(found) if isinstance(label, int)]
            if scores is not None and rows:
                labels = [found[row] for row in rows]
                total = total.index_add(0, torch.tensor(rows), scores[labels])
        return total

    def additive(self, on_steps: Tensor, on_moves: Tensor, on_segments: Tensor, paths: Tensor):
        """[P]: the sum of values [T, K], [T-1, K, K] and [T, L, K]; -inf for what is no path."""
        found = self._segmentations(paths)
        pairs = [(row, z) for row, z in enumerate(found) if z is not None]
        total = on_segments.new_zeros(len(paths))
        places = [(row, t, size - 1, k) for row, z in pairs for t, size, k in z]
        if places:
            row, t, size, label = torch.tensor(places).T
            total = total.index_add(0, row, on_segments[t, size, label])
        steps = [(row, t + n, k) for row, z in pairs for t, size, k in z for n in range(size)]
        if steps:
            row, t, label = torch.tensor(steps).T
            total = total.index_add(0, row, on_steps[t, label])
        moves = [
            (row, z[n + 1][0] - 1, z[n][2], z[n + 1][2])
            for row, z in pairs
            for n in range(len(z) - 1)
        ]
        if moves:
            row, t, before, after = torch.tensor(moves).T
            total = total.index_add(0, row, on_moves[t, before, after])
        return total.where(torch.tensor([z is not None for z in found]), -torch.inf)

    def events(self) -> Tensor:
        events = self.parts[0].new_zeros(len(self.paths), *self.event_shape)
        for row, z in enumerate(self._segmentations(self.paths)):
            for t, size, label in z:
                events[row, t, size - 1, label] = 1
        return events

    def token_marginals(self) -> Tensor:
        """[T, K]"""
        labels = torch.nn.functional.one_hot(self.paths % self.num_labels, self.num_labels).double()
        labels[:, self.length :] = 0
        return torch.einsum("p,ptk->tk", self.probs, labels)

    def edge_marginals(self) -> Tensor:
        """[T-1, K, K]: of a segment of label i that ends with step t, and one of j after it."""
        num_steps, _, num_labels = self.event_shape
        moves = self.parts[0].new_zeros(len(self.paths), num_steps, num_labels, num_labels)
        for row, z in enumerate(self._segmentations(self.paths)):
            for n in range(len(z) - 1):
                moves[row, z[n + 1][0] - 1, z[n][2], z[n + 1][2]] = 1
        return torch.einsum("p,p...->...", self.probs, moves[:, :-1])

    def expectation(self, on_steps: Tensor, on_moves: Tensor, on_segments: Tensor) -> Tensor:
        return (self.probs * self.additive(on_steps, on_moves, on_segments, self.paths)).sum()


class SegmentOracle(BatchOracle):
    """A batch of chains, with the arguments of `SemiMarkovCRF`, in float64."""

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor,
        durations: Tensor | None,
        lengths: Tensor | None = None,
        *,
        segments: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> None:
        num_steps, num_labels = emissions.shape[-2:]
        longest = (durations if segments is None else segments).shape[-2]
        shape = torch.Size([num_steps, longest, num_labels])
        if lengths is None:
            lengths = torch.full(emissions.shape[:-2], num_steps)
        parts = [(emissions, 2), (segments, 3), (durations, 2), (lengths, 0), (start, 1), (end, 1)]
        shapes = [x.shape[: x.dim() - dims] for x, dims in parts if x is not None]
        edges = self._every_edge(transitions, max(map(len, shapes)), num_steps)
        batch_shape = torch.broadcast_shapes(*shapes, edges.shape[:-3])
        total = torch.zeros(shape).double()
        if segments is not None:
            total = total + segments.double()
        if durations is not None:
            total = total + durations.double().unsqueeze(-3)
        parts = [(emissions, 2), (edges, 3), (total, 3), (lengths, 0), (start, 1), (end, 1)]
        arguments = zip(*[each_of(*part, batch_shape) for part in parts], strict=True)
        singles = [SingleSegmentation(e, a, s, int(n), f, g) for e, a, s, n, f, g in arguments]
        super().__init__(batch_shape, shape, singles)

    def _every_edge(self, edges: Tensor, batch_dims: int, num_steps: int) -> Tensor:
        if edges.dim() == batch_dims + 3:
            return edges
        return edges.unsqueeze(-3).expand(*edges.shape[:-2], num_steps - 1, -1, -1)

    @property
    def token_marginals(self) -> Tensor:
        return self.stack([single.token_marginals() for single in self.singles])

    @property
    def boundary_marginals(self) -> Tensor:
        return self.marginals.sum((-1, -2))

    @property
    def edge_marginals(self) -> Tensor:
        return self.stack([single.edge_marginals() for single in self.singles])

    def expectation(
        self,
        node_values: Tensor | None = None,
        edge_values: Tensor | None = None,
        segment_values: Tensor | None = None,
    ) -> Tensor:
        num_steps, longest, num_labels = self.event_shape
        zeros = functools.partial(torch.zeros, dtype=torch.float64)
        nodes = zeros(num_steps, num_labels) if node_values is None else node_values
        edges = zeros(num_labels, num_labels) if edge_values is None else edge_values
        edges = self._every_edge(edges, len(self.batch_shape), num_steps)
        segments = zeros(longest, num_labels) if segment_values is None else segment_values
        if segments.dim() < len(self.batch_shape) + 3:
            segments = segments.unsqueeze(-3).expand(*segments.shape[:-2], num_steps, -1, -1)
        parts = (each_of(x, dims, self.batch_shape) for x, dims in ((nodes, 2), (edges, 3)))
        each = zip(self.singles, *parts, each_of(segments, 3, self.batch_shape), strict=True)
        return self.stack([single.expectation(*values) for single, *values in each])
