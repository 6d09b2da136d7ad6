"""What a text is made of before its spaces are set."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    WORD = auto()  # lower-cased, as the model wrote it
    VALUE = auto()  # of a table, in place of its marks
    QUOTE = auto()  # of a table too; the model wrote its words
    GAP = auto()  # a word that cannot be written


class Piece(NamedTuple):
    text: str
    kind: Kind = Kind.WORD

    @property
    def is_verbatim(self) -> bool:
        """Whether the table says how it is written."""
        return self.kind in (Kind.VALUE, Kind.QUOTE)


GAP = Piece("", Kind.GAP)
