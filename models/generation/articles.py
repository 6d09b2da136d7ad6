"""The article before a word: the model writes it first, and before a value without seeing that."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from models.generation.pieces import GAP, Kind, Piece

INDEFINITE = ("a", "an")
ARTICLES = (*INDEFINITE, "the")
UNSEEN = (Kind.VALUE, Kind.GAP)  # by the model
CLEAR = re.compile(r"[ai]|e(?![uw])|o(?!nc?e)|[b-dfgj-np-tv-z]")  # these letters tell its sound
SPOKEN_WITH_CONSONANT = re.compile(r"uni(?!n|m)|us(?:[aeu]|\b)|uk\b|eu|one\b|once\b")
SPOKEN_WITH_VOWEL = re.compile(r"[aeiou]|hour|honest|honou?r|heir|8|1[18]\b")


def correct_articles(pieces: Sequence[Piece]) -> list[Piece]:
    """Indefinite articles go by what follows, and no article stands before its like.

    So "a" comes before French, "an" before Italian, and "the" not before The Vaults. Before a gap,
    it goes by what follows the gap. Where letters do not tell ("a utensil", "an hour"), a word that
    the model wrote keeps the article that the model gave it.
    """
    return list(_corrected(pieces))


def _corrected(pieces: Sequence[Piece]) -> Iterator[Piece]:
    for i, piece in enumerate(pieces):
        rest = pieces[i + 1 :]
        following = next((p for p in rest if p != GAP), None)
        if following is None or not _is_article(piece) or not _tells(rest[0], following):
            yield piece
        elif not _has_article(following, piece.text):
            yield Piece(indefinite_article(following.text)) if piece.text in INDEFINITE else piece


def indefinite_article(text: str) -> str:
    """That of its first word, by letters: an Italian, a university, an hour, an £8."""
    letters = unicodedata.normalize("NFD", text.lower())
    word = re.sub(r"^[\W_]+", "", letters)
    if SPOKEN_WITH_CONSONANT.match(word):
        return "a"
    return "an" if SPOKEN_WITH_VOWEL.match(word) else "a"


def _tells(next_piece: Piece, following: Piece) -> bool:
    """Does what follows say more than the model knew when it wrote the article?"""
    return next_piece.kind in UNSEEN or bool(CLEAR.match(following.text.lower()))


def _is_article(piece: Piece) -> bool:
    return piece.kind is Kind.WORD and piece.text in ARTICLES


def _has_article(piece: Piece, article: str) -> bool:
    return piece.kind is Kind.VALUE and piece.text.lower().startswith(f"{article} ")
