"""From the words of a model to the text that a reader sees."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from models.data.tables import Table
from models.generation.articles import correct_articles
from models.generation.casing import raise_first_letter, starts_of_sentences
from models.generation.detokenise import detokenise
from models.generation.gaps import close_gaps
from models.generation.pieces import Kind, Piece
from models.generation.relexicalise import relexicalise, with_gaps


def write_text(words: Sequence[str], table: Table, casing: Mapping[str, str]) -> str:
    """The text of a sentence about a table, its key marks replaced by values.

    Values appear as the table writes them, except that one without capitals gets one at the start
    of a sentence. What cannot be written, an unknown word or the mark of a key that the table
    lacks, is left out: `close_gaps` says what goes with it. `casing` has the form of words that
    are not lower-cased.
    """
    return _write(relexicalise(words, table), casing)


def plain_text(words: Sequence[str], casing: Mapping[str, str]) -> str:
    """The text of a sentence that is about no table."""
    return _write(with_gaps(words), casing)


def _write(pieces: Sequence[Piece], casing: Mapping[str, str]) -> str:
    whole = _share_full_stops(close_gaps(correct_articles(pieces)))
    cased = [casing.get(p.text, p.text) if p.kind is Kind.WORD else p.text for p in whole]
    starts = starts_of_sentences(cased)
    return detokenise(
        [raise_first_letter(text) if s else text for text, s in zip(cased, starts, strict=True)]
    )


def _share_full_stops(pieces: Sequence[Piece]) -> list[Piece]:
    """A value with a full stop at its end, such as "Smith & Co.", needs no other one."""
    return [
        Piece(p.text.removesuffix("."), p.kind) if p.is_verbatim and n.text == "." else p
        for p, n in itertools.pairwise([*pieces, Piece("")])
    ]
