"""The values of a table, put back where their marks stand."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from models.data.content_words import STOP_WORDS
from models.data.delexicalise import TRUTH_VALUES, key_mark
from models.data.tables import Table
from models.data.tokens import tokenise
from models.data.vocabulary import MARKS
from models.generation.pieces import GAP, Kind, Piece

KEY_MARK = re.compile(r"_.*[^_].*_")


def relexicalise(words: Sequence[str], table: Table) -> list[Piece]:
    """Every run of one key mark becomes the whole value once, as the table writes it.

    A run of words that make up a whole value becomes that value too, unless they are function
    words alone: a restaurant called It does not own every "it". A mark whose key the table lacks,
    or has with a mere yes or no, leaves a gap, and so does an unknown word.
    """
    values = {key_mark(key): value for key, value in reversed(table) if _can_be_quoted(value)}
    quotes = {tuple(tokenise(value)): value for value in values.values() if _is_telling(value)}
    pieces: list[Piece] = []
    position = 0
    while position < len(words):
        piece, length = _piece_at(words[position:], values, quotes)
        pieces.append(piece)
        position += length
    return pieces


def with_gaps(words: Sequence[str]) -> list[Piece]:
    """The same for words without a table, where no word is a key mark."""
    return [GAP if word in MARKS.values() else Piece(word) for word in words]


def _piece_at(
    words: Sequence[str], values: Mapping[str, str], quotes: Mapping[tuple[str, ...], str]
) -> tuple[Piece, int]:
    """What the first words become, and how many they are."""
    first = words[0]
    if first in values or KEY_MARK.fullmatch(first):
        run = len(list(itertools.takewhile(first.__eq__, words)))
        return (Piece(values[first], Kind.VALUE) if first in values else GAP), run
    quoted = [value for value in quotes if tuple(words[: len(value)]) == value]
    if quoted:
        longest = max(quoted, key=len)
        return Piece(quotes[longest], Kind.QUOTE), len(longest)
    return with_gaps([first])[0], 1


def _can_be_quoted(value: str) -> bool:
    return bool(value) and tokenise(value) not in TRUTH_VALUES


def _is_telling(value: str) -> bool:
    return not STOP_WORDS.issuperset(tokenise(value))
