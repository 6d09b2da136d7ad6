"""The text of a sentence, from its words."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from models.data.casing import starts_of_sentences
from models.data.tables import Table
from models.surface.articles import correct_articles
from models.surface.detokenise import detokenise
from models.surface.gaps import close_gaps
from models.surface.relexicalise import Kind, Piece, relexicalise, with_gaps


def text_about(words: Sequence[str], table: Table, casing: Mapping[str, str]) -> str:
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


def raise_first_letter(text: str) -> str:
    """For the start of a sentence; what has capitals already, such as eBay, stays as it is."""
    first = text[:1].upper()
    return first + text[1:] if text == text.lower() and len(first) == 1 else text


def _write(pieces: Sequence[Piece], casing: Mapping[str, str]) -> str:
    whole = [*close_gaps(correct_articles(pieces)), Piece("")]
    cased = []
    for piece, following in itertools.pairwise(whole):
        if piece.kind is Kind.WORD:
            cased.append(casing.get(piece.text, piece.text))
        else:  # a value with a full stop at its end, such as "Smith & Co.", needs no other one
            cased.append(piece.text.removesuffix(".") if following.text == "." else piece.text)
    starts = starts_of_sentences(cased)
    return detokenise(
        [raise_first_letter(text) if s else text for text, s in zip(cased, starts, strict=True)]
    )
