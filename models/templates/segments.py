"""Segments of a template: its runs of equal states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


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
