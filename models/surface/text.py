"""The text of a sentence, from its words."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from models.data.tables import Table
from models.data.tokens import starts_of_sentences, tokenise
from models.surface.pieces import (
    Kind,
    Piece,
    close_gaps,
    correct_articles,
    relexicalise,
    with_gaps,
)

BINDS_LEFT = frozenset([*",.;:!?%…)]}/", "'s"])  # no space before it
BINDS_RIGHT = frozenset("([{#/")  # no space after it
CURRENCIES = "£$€"


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
    """Starts a sentence with a capital; what has one already, such as eBay, stays as it is."""
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


def detokenise(words: Sequence[str]) -> str:
    """Text that `tokenise` parts into the same words again, up to their case.

    Words are joined only where `tokenise` would part them, so "£ 20" and "12 : 30" stay what they
    are. A word may also be a whole phrase, with its own spaces.
    """
    chunks: list[list[str]] = []  # words with no space between them
    open_quotes = {'"': False, "'": False}
    bound_to_next = False
    for i, word in enumerate(words):
        if word in open_quotes and (open_quotes[word] or not _is_apostrophe(words, i)):
            open_quotes[word] = not open_quotes[word]
            left, right = not open_quotes[word], open_quotes[word]
        else:
            after_number = word in CURRENCIES and i > 0 and words[i - 1][-1:].isdigit()
            left, right = word in BINDS_LEFT or word == "'" or after_number, word in BINDS_RIGHT
        joined = [*chunks[-1], word] if chunks and (bound_to_next or left) else []
        if joined and tokenise("".join(joined)) == tokenise(" ".join(joined)):
            chunks[-1] = joined
        else:
            chunks.append([word])
        bound_to_next = right
    return " ".join("".join(chunk) for chunk in chunks)


def _is_apostrophe(words: Sequence[str], i: int) -> bool:
    """Whether the sign, where no quotation is open, ends a word: the Wrestlers' food.

    It does if no partner follows, or if it follows an s and an odd number of partners would.
    """
    if words[i] != "'":
        return False
    partners = words[i + 1 :].count("'")
    return partners == 0 or (partners % 2 == 0 and i > 0 and words[i - 1].endswith("s"))
