"""Which entries of its table a sentence quotes, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

from models.data.delexicalise import delexicalise, key_mark


def quoted_order(words: Sequence[str], table: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The keys of the table, in the order in which a delexicalised sentence first quotes them.

    A key is quoted by its mark, or where the sentence lacks that, by the words of its value. What
    is covered by one value is not another's, as in `delexicalise`. Keys that are not quoted are
    left out; so are those with the value yes or no, which sentences do not quote.
    """
    unmarked = [(key, value) for key, value in table if key_mark(key) not in words]
    marked = delexicalise(words, unmarked)
    quoted = [key for key, _ in table if key_mark(key) in marked]
    return tuple(sorted(quoted, key=lambda key: marked.index(key_mark(key))))
