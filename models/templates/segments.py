"""Segments of a template, and templates that differ in them.

Segments are the phrases of a template that has any (`Phrases`), else its runs of equal states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


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
    of equals, the earlier one. There are fewer than `number` where all that is left equals a chosen
    one.
    """
    collapsed = [collapse(states) for states in templates]
    nearest, chosen = [math.inf] * len(collapsed), list[int]()
    while len(chosen) < number and max(nearest, default=0) > 0:
        chosen.append(nearest.index(max(nearest)))
        distances = (_distance(collapsed[chosen[-1]], other) for other in collapsed)
        nearest = list(map(min, nearest, distances))
    return chosen


def _distance(one: Sequence[int], other: Sequence[int]) -> float:
    """The edit distance, divided by the length of the longer."""
    row = list(range(len(other) + 1))  # edits to each beginning of the other
    for state in one:
        above, row = row, [row[0] + 1]
        for place, its in enumerate(other):
            row.append(min(above[place] + (state != its), above[place + 1] + 1, row[place] + 1))
    return row[-1] / max(len(one), len(other), 1)
