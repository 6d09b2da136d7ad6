"""The oracle of the semi-Markov proof: every answer, by enumeration of all segmentations.

    score(z) = sum of segments[t, l-1, k] over segments + sum of transitions[i, j] over neighbours

Nothing of `structdist` is used here.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from tests.enumeration import BatchOracle, Outcomes, each_of

Segment = tuple[int, int, int]  # start, length, label


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
    """The code 1 + (l-1) K + k where a segment starts, 0 elsewhere."""
    path = [0] * num_steps
    for start, size, label in segmentation:
        path[start] = 1 + (size - 1) * num_labels + label
    return path


def all_segmentations(num_steps: int, longest: int, num_labels: int, length: int) -> Tensor:
    """[P, T]: the paths of a chain of some length, zeros beyond."""
    found = segmentations(length, longest, num_labels)
    return torch.tensor([path_of(z, num_steps, num_labels) for z in found])


class SingleSegmentation(Outcomes):
    """All allowed segmentations of one chain. Scores are [T, L, K] and [K, K]."""

    def __init__(self, segments: Tensor, transitions: Tensor, length: int) -> None:
        self.segments, self.transitions, self.length = segments, transitions, length
        num_steps, self.longest, self.num_labels = segments.shape
        self.num_codes = 1 + self.longest * self.num_labels
        found = segmentations(length, self.longest, self.num_labels)
        self._by_path = {tuple(path_of(z, num_steps, self.num_labels)[:length]): z for z in found}
        super().__init__(all_segmentations(num_steps, self.longest, self.num_labels, length))

    def score(self, paths: Tensor) -> Tensor:
        return self.additive(self.segments, self.transitions, paths)

    def additive(self, on_segments: Tensor, on_moves: Tensor, paths: Tensor) -> Tensor:
        """[P]: the sum of values [T, L, K] and [K, K] along paths; -inf for what is no path."""
        found = [self._by_path.get(tuple(path[: self.length])) for path in paths.tolist()]
        pairs = [(row, z) for row, z in enumerate(found) if z is not None]
        total = on_segments.new_zeros(len(paths))
        places = [(row, t, size - 1, k) for row, z in pairs for t, size, k in z]
        if places:
            row, t, size, label = torch.tensor(places).T
            total = total.index_add(0, row, on_segments[t, size, label])
        moves = [(row, z[n][2], z[n + 1][2]) for row, z in pairs for n in range(len(z) - 1)]
        if moves:
            row, before, after = torch.tensor(moves).T
            total = total.index_add(0, row, on_moves[before, after])
        return total.where(torch.tensor([z is not None for z in found]), -torch.inf)

    def events(self) -> Tensor:
        events = self.segments.new_zeros(len(self.paths), *self.segments.shape)
        for row, path in enumerate(self.paths.tolist()):
            for t, size, label in self._by_path[tuple(path[: self.length])]:
                events[row, t, size - 1, label] = 1
        return events

    def move_marginals(self) -> Tensor:
        """[T-1, K, K]: of a segment of label i that ends before step t+1, and one of j from it."""
        moves = self.segments.new_zeros(len(self.paths), len(self.segments), *2 * [self.num_labels])
        for row, path in enumerate(self.paths.tolist()):
            z = self._by_path[tuple(path[: self.length])]
            for n in range(len(z) - 1):
                moves[row, z[n + 1][0] - 1, z[n][2], z[n + 1][2]] = 1
        return torch.einsum("p,p...->...", self.probs, moves[:, :-1])

    def expectation(self, on_segments: Tensor, on_moves: Tensor) -> Tensor:
        return (self.probs * self.additive(on_segments, on_moves, self.paths)).sum()


class SegmentOracle(BatchOracle):
    """A batch of chains, with the arguments of `SegmentCRF`, in float64."""

    def __init__(self, segments: Tensor, transitions: Tensor, lengths: Tensor | None = None):
        if lengths is None:
            lengths = torch.full(segments.shape[:-3], segments.shape[-3])
        batch_shape = torch.broadcast_shapes(segments.shape[:-3], lengths.shape)
        arguments = each_of(segments, 3, batch_shape), each_of(lengths, 0, batch_shape)
        transitions = transitions.double()
        singles = [
            SingleSegmentation(x, transitions, int(n)) for x, n in zip(*arguments, strict=True)
        ]
        super().__init__(batch_shape, segments.shape[-3:], singles)

    @property
    def move_marginals(self) -> Tensor:
        return self.stack([single.move_marginals() for single in self.singles])

    def expectation(self, on_segments: Tensor, on_moves: Tensor | None = None) -> Tensor:
        if on_moves is None:
            on_moves = torch.zeros(self.event_shape[-1], self.event_shape[-1])
        each = zip(self.singles, each_of(on_segments, 3, self.batch_shape), strict=True)
        return self.stack([single.expectation(x, on_moves.double()) for single, x in each])
