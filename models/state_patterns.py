"""Patterns of states, as a user writes them to find templates.

A pattern describes a whole template whose runs of equal states count as one state: 3 3 5 5 5 1 is
3 5 1. It is a list of pieces, separated by spaces or commas:

    3       state 3
    3|5     one state, 3 or 5
    !3      one state that is not 3; !3|5 is neither of the two
    ?       one state, whichever
    *       any states, or none

So `3 * 1` begins with 3 and ends with 1, and `* 4 7 *` has 4 followed by 7 somewhere. A number that
is repeated at once counts once, as in a template: a template, pasted, is a pattern that finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from models.errors import SettingError

FIRST = 0x10000  # the character of state 0; from here on none means anything in a regex
STATES = re.compile(r"(!?)([0-9]{1,9}(?:\|[0-9]{1,9})*)")


def collapse(states: Iterable[int]) -> tuple[int, ...]:
    """Each run of equal states as one state."""
    return tuple(state for state, _ in groupby(states))


def as_characters(states: Iterable[int]) -> str:
    """One character for each state, for the regex of a pattern."""
    return "".join(chr(FIRST + state) for state in states)


@dataclass(frozen=True)
class StatePattern:
    text: str  # as the user wrote it
    regex: re.Pattern[str]  # over the characters of collapsed states

    def matches(self, states: Iterable[int]) -> bool:
        """`states` may have runs; they are collapsed first."""
        return self.regex.fullmatch(as_characters(collapse(states))) is not None


def parse_pattern(text: str, num_states: int) -> StatePattern:
    """Raises a `SettingError` that quotes the piece that cannot be read."""
    pieces = [piece for piece in re.split(r"[\s,]+", text) if piece]
    if not pieces:
        raise SettingError(f"the pattern of states is empty; {_possible(num_states)}")
    units = [_unit(piece, text, num_states) for piece in pieces]
    return StatePattern(text, _regex(_without_repeats(units)))


def _unit(piece: str, text: str, num_states: int) -> str:
    """A piece as a regex; the star stays a star."""
    if piece in ("*", "?"):
        return {"*": "*", "?": "."}[piece]
    match = STATES.fullmatch(piece)
    if match is None:
        raise SettingError(f"{_place(piece, text)} cannot be read; {_possible(num_states)}")
    states = [int(number) for number in match[2].split("|")]
    if max(states) >= num_states:
        problem = f"there is no state {max(states)}"
        raise SettingError(f"{_place(piece, text)}: {problem}; {_possible(num_states)}")
    if match[1] and len(set(states)) == num_states:
        raise SettingError(f"{_place(piece, text)} leaves no state; {_possible(num_states)}")
    characters = as_characters(states)
    if match[1]:
        return f"[^{characters}]"
    return characters if len(states) == 1 else f"[{characters}]"


def _place(piece: str, text: str) -> str:
    return f"{piece!r} in the pattern {text!r}"


def _possible(num_states: int) -> str:
    return (
        f"possible are states from 0 to {num_states - 1}, ? for any one state, * for any states "
        "or none, 0|1 for either and !0 for any but one, separated by spaces"
    )


def _without_repeats(units: list[str]) -> list[str]:
    """Equal neighbours only where each stands for one state of its own: `?`, `!3` and `3|5`."""
    before = ["", *units]
    pairs = zip(before, units, strict=False)
    return [unit for last, unit in pairs if unit != last or unit[0] in ".["]


def _regex(units: list[str]) -> re.Pattern[str]:
    """Time is at most the template's length times the pattern's, also where nothing matches.

    What is between two stars may as well match as early as it can, so nothing is tried again: a
    look-ahead finds it and, once left, keeps its first answer.
    """
    first, *rest = "".join(units).split("*")
    if not rest:
        return re.compile(first)
    *middle, last = rest
    found = [f"(?=(?P<part{i}>.*?{part}))(?P=part{i})" for i, part in enumerate(middle)]
    return re.compile(f"{first}{''.join(found)}.*{last}")
