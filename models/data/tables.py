"""Tables as text, `name[The Vaults], eatType[pub]`, and their values in sentences about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from models.data.tokens import tokenise

Table = tuple[tuple[str, str], ...]  # key and value, in the order of the text

PAIR = re.compile(r"([^\[\],]*)\[([^\[\]]*)\]\s*")
EXAMPLE = "a table looks like name[The Vaults], eatType[pub]"
MOST_SHOWN = 200  # characters of what is wrong
TRUTH_VALUES = (["yes"], ["no"])  # they answer a question; the sentence does not quote them


def parse_table(text: str) -> Table:
    """Raises a `ValueError` that says what is wrong with the text, and where."""
    pairs: dict[str, str] = {}
    position = 0
    while match := PAIR.match(text, position):
        key, value = match[1].strip(), match[2].strip()
        if not key:
            raise _error(f"no key before [{value}]")
        if not value:
            raise _error(f"no value for {key!r}")
        if key in pairs:
            raise _error(f"{key!r} is there twice")
        pairs[key] = value
        position = match.end()
        if position == len(text):
            return tuple(pairs.items())
        if text[position] != ",":
            rest = text[position:]
            problem = "no comma before" if PAIR.match(rest) else "text outside brackets:"
            raise _error(f"{problem} {rest.strip()!r}")
        position += 1
    raise _error(_no_pair(text[position:]))


def format_table(table: Table) -> str:
    """What `parse_table` reads."""
    return ", ".join(f"{key}[{value}]" for key, value in table)


def values_by_key(tables: Iterable[Table]) -> dict[str, list[str]]:
    """The values that each key has, the most frequent first."""
    found: dict[str, list[str]] = {}
    for (key, value), _ in Counter(pair for table in tables for pair in table).most_common():
        found.setdefault(key, []).append(value)
    return found


def _no_pair(rest: str) -> str:
    """Why no pair begins here."""
    before_comma, before_bracket = rest.split(",")[0].strip(), rest.split("[")[0].strip()
    if not before_comma:
        return "nothing where a pair key[value] should be"
    if "[" not in before_comma or "]" in before_bracket:
        return f"text outside brackets: {min(before_comma, before_bracket, key=len)!r}"
    return f"the bracket after {before_bracket!r} is not closed"


def _error(message: str) -> ValueError:
    shown = message if len(message) <= MOST_SHOWN else f"{message[:MOST_SHOWN]}..."
    return ValueError(f"{shown}; {EXAMPLE}")


def key_mark(key: str) -> str:
    """The word that stands for a value of `key`: `_customer_rating_` for "customer rating"."""
    return f"_{'_'.join(key.lower().split())}_"


def delexicalise(words: Sequence[str], table: Table) -> list[str]:
    """Each word of a quoted table value becomes the mark of its key.

    Longer values are looked for first, and what a value has covered is not looked at again. Where
    two keys have the same value, the one that the table names first takes it.
    """
    result, free = list(words), [True] * len(words)
    values = [(key_mark(key), tokenise(value)) for key, value in table]
    for mark, value in sorted(values, key=lambda pair: -len(pair[1])):
        if not value or value in TRUTH_VALUES:
            continue
        for start in range(len(words) - len(value) + 1):
            span = slice(start, start + len(value))
            if list(words[span]) == value and all(free[span]):
                result[span] = [mark] * len(value)
                free[span] = [False] * len(value)
    return result


def quoted_order(words: Sequence[str], table: Table) -> tuple[str, ...]:
    """The keys of the table, in the order in which a delexicalised sentence first quotes them.

    A key is quoted by its mark, or where the sentence lacks that, by the words of its value. What
    is covered by one value is not another's, as in `delexicalise`. Keys that are not quoted are
    left out; so are those with the value yes or no, which sentences do not quote.
    """
    unmarked = tuple((key, value) for key, value in table if key_mark(key) not in words)
    marked = delexicalise(words, unmarked)
    quoted = [key for key, _ in table if key_mark(key) in marked]
    return tuple(sorted(quoted, key=lambda key: marked.index(key_mark(key))))
