"""The values of a table, taken out of a sentence about it."""

from __future__ import annotations

from collections.abc import Sequence

from models.data.tokens import tokenise

TRUTH_VALUES = (["yes"], ["no"])  # they answer a question; the sentence does not quote them


def key_mark(key: str) -> str:
    """The word that stands for a value of `key`: `_customer_rating_` for "customer rating"."""
    return f"_{'_'.join(key.lower().split())}_"


def delexicalise(words: Sequence[str], table: Sequence[tuple[str, str]]) -> list[str]:
    """Each word of a quoted table value becomes the mark of its key.

    Longer values are looked for first, and what a value has covered is not looked at again. Where
    two keys have the same value, the one that the table names first takes it.
    """
    result, free = list(words), [True] * len(words)
    values = [(key_mark(key), tokenise(value)) for key, value in table]
    for mark, value in sorted(values, key=lambda pair: -len(pair[1])):
        if not value or value in TRUTH_VALUES:
            continue
        for start in _occurrences(words, value):
            span = slice(start, start + len(value))
            if all(free[span]):
                result[span] = [mark] * len(value)
                free[span] = [False] * len(value)
    return result


def _occurrences(words: Sequence[str], value: list[str]) -> list[int]:
    """Where `value` starts in `words`."""
    starts = [i for i, word in enumerate(words) if word == value[0]]
    return [i for i in starts if list(words[i : i + len(value)]) == value]
