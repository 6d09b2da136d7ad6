"""From words to text: spaces where a careful writer puts them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Flag

from models.data.tokens import tokenise


class Binds(Flag):
    """On which sides a word stands without a space."""

    NEITHER = 0
    LEFT = 1
    RIGHT = 2
    BOTH = 3


OPENING, CLOSING = "([{", ")]}"
SIGNS = {
    **dict.fromkeys([*",.;:!?%…", *CLOSING, "'s"], Binds.LEFT),
    **dict.fromkeys([*OPENING, "#"], Binds.RIGHT),
    "/": Binds.BOTH,
}
CURRENCIES = "£$€"


def detokenise(words: Sequence[str]) -> str:
    """Text that `tokenise` parts into the same words again, up to their case.

    Words are joined only where `tokenise` would part them, so "£ 20" and "12 : 30" stay what they
    are. A word may also be a whole phrase, with its own spaces.
    """
    chunks: list[list[str]] = []  # words with no space between them
    bound_to_next = False
    for word, binds in zip(words, _bindings(words), strict=True):
        joins = bound_to_next or Binds.LEFT in binds
        if chunks and joins and _come_apart([*chunks[-1], word]):
            chunks[-1].append(word)
        else:
            chunks.append([word])
        bound_to_next = Binds.RIGHT in binds
    return " ".join("".join(chunk) for chunk in chunks)


def _come_apart(words: Sequence[str]) -> bool:
    return tokenise("".join(words)) == tokenise(" ".join(words))


def _bindings(words: Sequence[str]) -> list[Binds]:
    found: list[Binds] = []
    open_quotes = {'"': False, "'": False}
    for i, word in enumerate(words):
        if word in open_quotes and (open_quotes[word] or not _is_apostrophe(words, i)):
            found.append(Binds.LEFT if open_quotes[word] else Binds.RIGHT)
            open_quotes[word] = not open_quotes[word]
        else:
            found.append(_binding(words, i))
    return found


def _binding(words: Sequence[str], i: int) -> Binds:
    """Of a word that is no quotation mark."""
    if words[i] == "'":
        return Binds.LEFT
    if words[i] in CURRENCIES:
        return Binds.LEFT if i and words[i - 1][-1:].isdigit() else Binds.NEITHER
    return SIGNS.get(words[i], Binds.NEITHER)


def _is_apostrophe(words: Sequence[str], i: int) -> bool:
    """Whether the sign, where no quotation is open, ends a word: the Wrestlers' food.

    It does if no partner follows, or if it follows an s and an odd number of partners would.
    """
    if words[i] != "'":
        return False
    partners = words[i + 1 :].count("'")
    return partners == 0 or (partners % 2 == 0 and i > 0 and words[i - 1].endswith("s"))
