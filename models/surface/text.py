"""The text of a sentence, from its words.

Words become pieces: values put back for their marks, articles corrected, gaps closed.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from models.data.tables import TRUTH_VALUES, Table, key_mark
from models.data.tokens import SENTENCE_ENDS, starts_of_sentences, stop_words, tokenise
from models.data.vocabulary import MARKS

BINDS_LEFT = frozenset([*",.;:!?%…)]}/", "'s"])  # no space before it
BINDS_RIGHT = frozenset("([{#/")  # no space after it
CURRENCIES = "£$€"
KEY_MARK = re.compile(r"_.*[^_].*_")
PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}
QUOTATION_MARKS = ('"', "'")
DEPENDENT = ("'s", "%")  # nothing without the word before
PAUSES = frozenset(",;:-–/&")  # noqa: RUF001
CANNOT_END = PAUSES.union(
    ["a", "an", "the", "and", "or", "but", "of", "in", "on", "at", "by", "to", "for", "from"],
    ["with", "near", "called", "named"],
)
INDEFINITE = ("a", "an")
ARTICLES = (*INDEFINITE, "the")
CLEAR = re.compile(r"[ai]|e(?![uw])|o(?!nc?e)|[b-dfgj-np-tv-z]")  # these letters tell its sound
SPOKEN_WITH_CONSONANT = re.compile(r"uni(?!n|m)|us(?:[aeu]|\b)|uk\b|eu|one\b|once\b")
SPOKEN_WITH_VOWEL = re.compile(r"[aeiou]|hour|honest|honou?r|heir|8|1[18]\b")


class Kind(Enum):
    WORD = auto()  # lower-cased, as the model wrote it
    VALUE = auto()  # of a table, in place of its marks
    QUOTE = auto()  # of a table too; the model wrote its words
    GAP = auto()  # a word that cannot be written


class Piece(NamedTuple):
    text: str
    kind: Kind = Kind.WORD


GAP = Piece("", Kind.GAP)


def text_about(words: Sequence[str], table: Table, casing: Mapping[str, str]) -> str:
    """The text of a sentence, its key marks replaced by values if it is about a table.

    Values appear as the table writes them, except that one without capitals gets one at the start
    of a sentence. What cannot be written, an unknown word or the mark of a key that the table
    lacks, is left out: `close_gaps` says what goes with it. `casing` has the form of words that
    are not lower-cased.
    """
    pieces = relexicalise(words, table) if table else with_gaps(words)
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


def raise_first_letter(text: str) -> str:
    """Starts a sentence with a capital; what has one already, such as eBay, stays as it is."""
    first = text[:1].upper()
    return first + text[1:] if text == text.lower() and len(first) == 1 else text


def relexicalise(words: Sequence[str], table: Table) -> list[Piece]:
    """Every run of one key mark becomes the whole value once, as the table writes it.

    A run of words that make up a whole value becomes that value too, unless they are function
    words alone: a restaurant called It does not own every "it". A mark whose key the table lacks,
    or has with a mere yes or no, leaves a gap, and so does an unknown word.
    """
    tokens = {value: tuple(tokenise(value)) for _, value in table}
    quotable = [(k, v) for k, v in table if v and list(tokens[v]) not in TRUTH_VALUES]
    values = {key_mark(key): value for key, value in reversed(quotable)}
    quotes = {tokens[v]: v for v in values.values() if not stop_words().issuperset(tokens[v])}
    pieces: list[Piece] = []
    position = 0
    while position < len(words):
        word, rest = words[position], words[position:]
        quoted = [own for own in quotes if tuple(rest[: len(own)]) == own]
        if word in values or KEY_MARK.fullmatch(word):
            pieces.append(Piece(values[word], Kind.VALUE) if word in values else GAP)
            position += len(list(itertools.takewhile(word.__eq__, rest)))
        elif quoted:
            longest = max(quoted, key=len)
            pieces.append(Piece(quotes[longest], Kind.QUOTE))
            position += len(longest)
        else:
            pieces += with_gaps([word])
            position += 1
    return pieces


def with_gaps(words: Sequence[str]) -> list[Piece]:
    """The same for words without a table, where no word is a key mark."""
    return [GAP if word in MARKS else Piece(word) for word in words]


def correct_articles(pieces: Sequence[Piece]) -> list[Piece]:
    """Indefinite articles go by what follows, and no article stands before its like.

    So "a" comes before French, "an" before Italian, and "the" not before The Vaults. Before a gap,
    it goes by what follows the gap. Where letters do not tell ("a utensil", "an hour"), a word that
    the model wrote keeps the article that the model gave it.
    """
    corrected: list[Piece] = []
    for i, piece in enumerate(pieces):
        following = next((p for p in pieces[i + 1 :] if p != GAP), None)
        if piece.kind is Kind.WORD and piece.text in ARTICLES and following is not None:
            unseen = pieces[i + 1].kind in (Kind.VALUE, Kind.GAP)  # by the model
            if following.kind is Kind.VALUE and following.text.lower().startswith(piece.text + " "):
                continue
            clear = unseen or CLEAR.match(following.text.lower())
            if clear and piece.text in INDEFINITE:
                piece = Piece(indefinite_article(following.text))
        corrected.append(piece)
    return corrected


def indefinite_article(text: str) -> str:
    """The article before the text, by its letters: an Italian, a university, an hour, an £8."""
    letters = unicodedata.normalize("NFD", text.lower())
    word = re.sub(r"^[\W_]+", "", letters)
    return "an" if SPOKEN_WITH_VOWEL.match(word) and not SPOKEN_WITH_CONSONANT.match(word) else "a"


def close_gaps(pieces: Iterable[Piece]) -> list[Piece]:
    """The text without gaps, and without what makes no sense beside one.

    That is an 's, brackets or quotation marks around nothing, two signs in a row, and, before a
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
