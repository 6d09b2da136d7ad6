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
from collections.abc import Callable, Sequence
from functools import cache

from models.errors import SettingError
from models.templates.segments import collapse

FIRST = 0x10000  # the character of state 0; from here on none means anything in a regex
STATES = re.compile(r"(!?)([0-9]{1,9}(?:\|[0-9]{1,9})*)")


def parse_pattern(text: str, num_states: int) -> Callable[[Sequence[int]], bool]:
    """A test of states for the pattern; a `SettingError` quotes a piece that cannot be read."""
    possible = (
        f"possible are states from 0 to {num_states - 1}, ? for any one state, * for any states "
        "or none, 0|1 for either and !0 for any but one, separated by spaces"
    )
    units: list[str] = []
    for piece in text.replace(",", " ").split():
        try:
            unit = _unit(piece, num_states)
        except ValueError as error:
            raise SettingError(f"{piece!r} in the pattern {text!r}{error}; {possible}") from error
        if units[-1:] != [unit] or unit[0] in ".[":  # `?`, `!3` and `3|5` each stand for one state
            units.append(unit)
    if not units:
        raise SettingError(f"the pattern of states is empty; {possible}")
    regex = _regex(units)
    return lambda states: regex.fullmatch(_characters(tuple(states))) is not None


@cache
def _characters(states: tuple[int, ...]) -> str:
    """One character for each run of equal states."""
    return "".join(chr(FIRST + state) for state in collapse(states))


def _unit(piece: str, num_states: int) -> str:
    """A piece as a regex; the star stays a star."""
    if piece in ("*", "?"):
        return piece.replace("?", ".")
    match = STATES.fullmatch(piece)
    if match is None:
        raise ValueError(" cannot be read")
    states = [int(number) for number in match[2].split("|")]
    if max(states) >= num_states:
        raise ValueError(f": there is no state {max(states)}")
    if match[1] and len(set(states)) == num_states:
        raise ValueError(" leaves no state")
    characters = _characters(tuple(states))
    if match[1]:
        return f"[^{characters}]"
    return characters if len(states) == 1 else f"[{characters}]"


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
