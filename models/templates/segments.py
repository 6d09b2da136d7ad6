"""Segments of a template, its runs of equal states, and templates that differ in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PADDING = -1  # no state


class Segment(NamedTuple):
    state: int
    start: int  # its first word
    end: int  # the word after its last


def segments(states: Sequence[int]) -> list[Segment]:
    starts = [i for i, state in enumerate(states) if i == 0 or state != states[i - 1]]
    ends = [*starts[1:], len(states)]
    return [Segment(states[start], start, end) for start, end in zip(starts, ends, strict=False)]


def collapse(states: Sequence[int]) -> tuple[int, ...]:
    """Each run of equal states as one state."""
    return tuple([segment.state for segment in segments(states)])


def different(templates: Sequence[tuple[int, ...]], number: int) -> list[int]:
    """The places of `number` templates that differ from one another, the first template first.

    Each further one is the farthest from those before it, which is to say from the nearest of them;
    of equals, the earlier one. The distance of two templates is the edit distance of their states,
    runs of equal states as one, divided by the length of the longer. There are fewer than `number`
    where all that is left equals a chosen one. Time is quadratic in the length, and linear in the
    number of templates times the number chosen.
    """
    if number < 1 or not templates:
        return []
    collapsed = [collapse(states) for states in templates]
    lengths = np.array([len(states) for states in collapsed])
    padded = np.full((len(collapsed), lengths.max()), PADDING)
    padded[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(collapsed)
    chosen = [0]
    nearest = _distances(collapsed[0], padded, lengths)
    while len(chosen) < number and nearest.max() > 0:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, _distances(collapsed[chosen[-1]], padded, lengths))
    return chosen


def _distances(
    one: tuple[int, ...], others: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The distance of `one` from each row of `others`, between 0 and 1.

    The usual table of edit distances, row by row and for all `others` at once. An entry is at most
    one more than the one to its left: less the column's number, it is at most what is to its left.
    """
    columns = np.arange(others.shape[1] + 1)
    row = np.tile(columns, (len(others), 1))
    for state in one:
        above = row + 1
        above[:, 1:] = np.minimum(above[:, 1:], row[:, :-1] + (others != state))
        row = np.minimum.accumulate(above - columns, axis=1) + columns
    edits = row[np.arange(len(others)), lengths]
    return edits / np.maximum(np.maximum(lengths, len(one)), 1)
