"""From words to text: spaces where a careful writer puts them."""

from __future__ import annotations

from collections.abc import Sequence

from models.data.tokens import tokenise

BINDS_LEFT = frozenset([*",.;:!?%…)]}/", "'s"])  # no space before it
BINDS_RIGHT = frozenset("([{#/")  # no space after it
CURRENCIES = "£$€"


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
        if chunks and (bound_to_next or left) and _come_apart([*chunks[-1], word]):
            chunks[-1].append(word)
        else:
            chunks.append([word])
        bound_to_next = right
    return " ".join("".join(chunk) for chunk in chunks)


def _come_apart(words: Sequence[str]) -> bool:
    return tokenise("".join(words)) == tokenise(" ".join(words))


def _is_apostrophe(words: Sequence[str], i: int) -> bool:
    """Whether the sign, where no quotation is open, ends a word: the Wrestlers' food.

    It does if no partner follows, or if it follows an s and an odd number of partners would.
    """
    if words[i] != "'":
        return False
    partners = words[i + 1 :].count("'")
    return partners == 0 or (partners % 2 == 0 and i > 0 and words[i - 1].endswith("s"))
