"""A text from which words are missing, made whole around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from models.data.casing import SENTENCE_ENDS
from models.surface.relexicalise import GAP, Kind, Piece

PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}
QUOTATION_MARKS = ('"', "'")
DEPENDENT = ("'s", "%")  # nothing without the word before
PAUSES = frozenset(",;:-–/&")  # noqa: RUF001
CANNOT_END = PAUSES.union(
    ["a", "an", "the", "and", "or", "but", "of", "in", "on", "at", "by", "to", "for", "from"],
    ["with", "near", "called", "named"],
)


def close_gaps(pieces: Iterable[Piece]) -> list[Piece]:
    """Without gaps, and without what makes no sense beside one.

    That is: an 's, brackets or quotation marks around nothing, two signs in a row, and, before a
    sign or the end, words such as "near" and "a". Other words stay, so a sentence can still lack
    its subject, say, but its punctuation is sound.
    """
    kept: list[Piece] = []
    after_gap = False
    for piece in pieces:
        if piece == GAP:
            after_gap = True
        elif after_gap and piece.kind is Kind.WORD and _leans_back(piece.text, kept):
            after_gap = not _add_sign(piece, kept)
        else:
            kept.append(piece)
            after_gap = False
    if after_gap:
        _drop_unfinished(kept)
    return kept


def _leans_back(text: str, kept: Sequence[Piece]) -> bool:
    """Whether it belongs to what is before it, as most signs do."""
    if text in QUOTATION_MARKS:
        return sum(piece.text == text for piece in kept) % 2 == 1
    return text in (*DEPENDENT, *PAUSES, *SENTENCE_ENDS, *PAIRS.values())


def _add_sign(sign: Piece, kept: list[Piece]) -> bool:
    """After a gap, what is left of the text takes the sign, or drops it and returns false."""
    if sign.text in DEPENDENT:
        return False
    _drop_unfinished(kept)
    last = kept[-1].text if kept else ""
    if PAIRS.get(last) == sign.text:
        kept.pop()
        return False
    if sign.text not in PAIRS.values() and last in ("", *SENTENCE_ENDS, *PAIRS):
        return False
    kept.append(sign)
    return True


def _drop_unfinished(kept: list[Piece]) -> None:
    while kept and kept[-1].kind is Kind.WORD and kept[-1].text in CANNOT_END:
        kept.pop()
