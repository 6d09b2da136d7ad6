"""Tables as text: `name[The Vaults], eatType[pub]`."""

from __future__ import annotations

import re

Table = tuple[tuple[str, str], ...]  # key and value, in the order of the text

PAIR = re.compile(r"\s*([^\[\],]*)\[([^\[\]]*)\]\s*")
EXAMPLE = "a table looks like name[The Vaults], eatType[pub]"


def parse_table(text: str) -> Table:
    """Raises a `ValueError` that says what is wrong with the text, and where."""
    pairs: dict[str, str] = {}
    position = 0
    while match := PAIR.match(text, position):
        key, value = match[1].strip(), match[2].strip()
        _check_pair(key, value, pairs)
        pairs[key] = value
        position = match.end()
        if position == len(text):
            return tuple(pairs.items())
        if text[position] != ",":
            raise _error(_outside(text[position:]))
        position += 1
    raise _error(_no_pair(text[position:]))


def format_table(table: Table) -> str:
    """What `parse_table` reads."""
    return ", ".join(f"{key}[{value}]" for key, value in table)


def _check_pair(key: str, value: str, earlier: dict[str, str]) -> None:
    if not key:
        raise _error(f"no key before [{value}]")
    if not value:
        raise _error(f"no value for {key!r}")
    if key in earlier:
        raise _error(f"{key!r} is there twice")


def _outside(rest: str) -> str:
    """Of what follows a pair where only a comma may."""
    problem = "no comma before" if PAIR.match(rest) else "text outside brackets:"
    return f"{problem} {rest.strip()!r}"


def _no_pair(rest: str) -> str:
    """Why no pair begins here."""
    before_comma, before_bracket = rest.split(",")[0].strip(), rest.split("[")[0].strip()
    if not before_comma:
        return "nothing where a pair key[value] should be"
    if "[" not in before_comma or "]" in before_bracket:
        return f"text outside brackets: {min(before_comma, before_bracket, key=len)!r}"
    return f"the bracket after {before_bracket!r} is not closed"


def _error(message: str) -> ValueError:
    return ValueError(f"{message}; {EXAMPLE}")
