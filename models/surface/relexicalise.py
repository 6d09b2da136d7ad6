"""The values of a table, put back where their marks stand: words become pieces of text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from models.data.content_words import STOP_WORDS
from models.data.delexicalise import TRUTH_VALUES, key_mark
from models.data.tables import Table
from models.data.tokens import tokenise
from models.data.vocabulary import MARKS

KEY_MARK = re.compile(r"_.*[^_].*_")


class Kind(Enum):
    WORD = auto()  # lower-cased, as the model wrote it
    VALUE = auto()  # of a table, in place of its marks
    QUOTE = auto()  # of a table too; the model wrote its words
    GAP = auto()  # a word that cannot be written


class Piece(NamedTuple):
    text: str
    kind: Kind = Kind.WORD


GAP = Piece("", Kind.GAP)


def relexicalise(words: Sequence[str], table: Table) -> list[Piece]:
    """Every run of one key mark becomes the whole value once, as the table writes it.

    A run of words that make up a whole value becomes that value too, unless they are function
    words alone: a restaurant called It does not own every "it". A mark whose key the table lacks,
    or has with a mere yes or no, leaves a gap, and so does an unknown word.
    """
    tokens = {value: tuple(tokenise(value)) for _, value in table}
    quotable = [(k, v) for k, v in table if v and list(tokens[v]) not in TRUTH_VALUES]
    values = {key_mark(key): value for key, value in reversed(quotable)}
    quotes = {tokens[v]: v for v in values.values() if not STOP_WORDS.issuperset(tokens[v])}
    pieces: list[Piece] = []
    position = 0
    while position < len(words):
        word, rest = words[position], words[position:]
        quoted = [own for own in quotes if tuple(rest[: len(own)]) == own]
        if word in values or KEY_MARK.fullmatch(word):
            pieces.append(Piece(values[word], Kind.VALUE) if word in values else GAP)
            position += len(list(itertools.takewhile(word.__eq__, rest)))
        elif quoted:
            longest = max(quoted, key=len)
            pieces.append(Piece(quotes[longest], Kind.QUOTE))
            position += len(longest)
        else:
            pieces += with_gaps([word])
            position += 1
    return pieces


def with_gaps(words: Sequence[str]) -> list[Piece]:
    """The same for words without a table, where no word is a key mark."""
    return [GAP if word in MARKS else Piece(word) for word in words]
