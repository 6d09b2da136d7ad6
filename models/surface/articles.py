"""The article before a word: the model writes it first, and before a value without seeing that."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from models.surface.relexicalise import GAP, Kind, Piece

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
    corrected: list[Piece] = []
    for i, piece in enumerate(pieces):
        rest = pieces[i + 1 :]
        following = next((p for p in rest if p != GAP), None)
        if piece.kind is not Kind.WORD or piece.text not in ARTICLES or following is None:
            corrected.append(piece)
        elif rest[0].kind not in UNSEEN and not CLEAR.match(following.text.lower()):
            corrected.append(piece)  # the model knew as much as we do
        elif following.kind is not Kind.VALUE or not _begins_with(piece.text, following.text):
            indefinite = piece.text in INDEFINITE
            corrected.append(Piece(indefinite_article(following.text)) if indefinite else piece)
    return corrected


def indefinite_article(text: str) -> str:
    """That of its first word, by letters: an Italian, a university, an hour, an £8."""
    letters = unicodedata.normalize("NFD", text.lower())
    word = re.sub(r"^[\W_]+", "", letters)
    if SPOKEN_WITH_CONSONANT.match(word):
        return "a"
    return "an" if SPOKEN_WITH_VOWEL.match(word) else "a"


def _begins_with(article: str, value: str) -> bool:
    return value.lower().startswith(f"{article} ")
