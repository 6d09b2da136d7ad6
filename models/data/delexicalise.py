"""The values of a table, taken out of a sentence about it."""

from __future__ import annotations

from collections.abc import Sequence

from models.data.tables import Table
from models.data.tokens import tokenise

TRUTH_VALUES = (["yes"], ["no"])  # they answer a question; the sentence does not quote them


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
