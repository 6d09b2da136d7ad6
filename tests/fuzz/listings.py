"""All outcomes of a chain, as rows of indices into one flat vector of scores.

The vector of a chain has the scores of all its *parts*, one kind after the other: of steps `T K`,
of moves `(T-1) K K`, of segments `T L K` (none for linear chains), of the first label `K`, of the
last `K`, and a zero. The score of an outcome is the sum over its row. Nothing of `structdist` is
used.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import torch
from torch import Tensor

from tests.oracle import all_paths
from tests.structures.segment_oracle import Segment, path_of, segmentations


class Sizes(NamedTuple):
    """Of a chain; `longest` is 0 for a linear chain, whose parts have no segments."""

    num_steps: int
    num_labels: int
    longest: int = 0

    @property
    def of_kinds(self) -> list[int]:
        """How many parts there are of each kind, the zero at the end included."""
        steps, labels, longest = self
        edges = (steps - 1) * labels * labels
        return [steps * labels, edges, steps * longest * labels, labels, labels, 1]

    @property
    def num_codes(self) -> int:
        """The integers of a path are below this."""
        return 2 * self.num_labels if self.longest else self.num_labels


class Listing(NamedTuple):
    paths: Tensor  # [P, T], zeros beyond the length
    parts: Tensor  # [P, M]: indices, filled up with that of the zero
    counts: Tensor  # [P, F] float64: 1 where an outcome has a part
    keys: Tensor  # [P]: the paths as numbers, sorted
    order: Tensor  # [P]: which path each of these numbers is of


@functools.lru_cache(maxsize=256)
def listing(sizes: Sizes, length: int) -> Listing:
    """Every outcome of a chain of some length."""
    outcomes = _segmentations(sizes, length)
    paths = torch.tensor([path_of(z, sizes.num_steps, sizes.num_labels) for z in outcomes])
    rows = [_parts_of(z, sizes) for z in outcomes]
    none = sum(sizes.of_kinds) - 1
    most = max(1, *map(len, rows)) if rows else 1
    parts = torch.tensor([[*row, *[none] * (most - len(row))] for row in rows])
    counts = torch.zeros(len(rows), none + 1, dtype=torch.float64).scatter_(1, parts, 1.0)
    counts[:, none] = 0
    keys, order = keys_of(paths, sizes).sort()
    return Listing(paths, parts, counts, keys, order)


def _segmentations(sizes: Sizes, length: int) -> list[tuple[Segment, ...]]:
    """The outcomes as segments; the states of a linear chain are segments of one step."""
    if sizes.longest:
        return segmentations(length, sizes.longest, sizes.num_labels)
    paths = all_paths(sizes.num_steps, sizes.num_labels, length)[:, :length].tolist()
    return [tuple((t, 1, label) for t, label in enumerate(path)) for path in paths]


def _parts_of(segmentation: tuple[Segment, ...], sizes: Sizes) -> list[int]:
    """The indices of the parts that an outcome has."""
    labels, longest = sizes.num_labels, sizes.longest
    at = [sum(sizes.of_kinds[:kind]) for kind in range(5)]
    found = [
        at[0] + t * labels + k for first, n, k in segmentation for t in range(first, first + n)
    ]
    for (_, _, before), (first, _, after) in itertools.pairwise(segmentation):
        found.append(at[1] + ((first - 1) * labels + before) * labels + after)
    if longest:
        found += [at[2] + (first * longest + n - 1) * labels + k for first, n, k in segmentation]
    if segmentation:
        found += [at[3] + segmentation[0][2], at[4] + segmentation[-1][2]]
    return found


def keys_of(paths: Tensor, sizes: Sizes) -> Tensor:
    """[...]: a number for each path [..., T]; negative for what has codes out of range."""
    base = max(sizes.num_codes, 2)
    key = torch.zeros(paths.shape[:-1], dtype=torch.long)
    for t in range(paths.shape[-1]):
        key = key * base + paths[..., t]
    return key.where(((paths >= 0) & (paths < base)).all(-1), -1)
