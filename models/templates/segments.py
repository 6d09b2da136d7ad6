"""Segments of a template, and templates that differ in them.

Segments are the phrases of a template that has any (`Phrases`), else its runs of equal states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PADDING = -1  # no state


class Phrases(tuple[int, ...]):
    """The states of a template, one for each word, that also says where phrases start.

    Unless it is told, they start where the state changes.
    """

    starts: tuple[bool, ...]

    def __new__(cls, states: Iterable[int], starts: Iterable[bool] | None = None) -> Phrases:
        made = super().__new__(cls, states)
        made.starts = tuple(_changes(made)) if starts is None else tuple(map(bool, starts))
        if len(made.starts) != len(made):
            raise ValueError(f"{len(made)} states, but {len(made.starts)} starts")
        return made

    def __eq__(self, other: object) -> bool:
        """Phrases differ from the same states without phrases."""
        return isinstance(other, Phrases) and (*self, *self.starts) == (*other, *other.starts)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.starts))


class Segment(NamedTuple):
    state: int
    start: int  # its first word
    end: int  # the word after its last


def segment_starts(states: Sequence[int]) -> Sequence[bool]:
    """Whether a segment starts with each word."""
    return states.starts if isinstance(states, Phrases) else _changes(states)


def segments(states: Sequence[int]) -> list[Segment]:
    starts = [i for i, begins in enumerate(segment_starts(states)) if begins]
    ends = [*starts[1:], len(states)]
    return [Segment(states[start], start, end) for start, end in zip(starts, ends, strict=False)]


def _changes(states: Sequence[int]) -> list[bool]:
    return [i == 0 or state != states[i - 1] for i, state in enumerate(states)]


def collapse(states: Sequence[int]) -> tuple[int, ...]:
    """Each segment as one state."""
    return tuple([segment.state for segment in segments(states)])


def different(templates: Sequence[tuple[int, ...]], number: int) -> list[int]:
    """The places of `number` templates that differ from one another, the first template first.

    Each further one is the farthest from those before it, which is to say from the nearest of them;
    of equals, the earlier one. The distance of two templates is the edit distance of the states of
    their segments, divided by the length of the longer. There are fewer than `number`
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
