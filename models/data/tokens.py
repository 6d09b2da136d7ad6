"""From text to words, and what words are: spoken or signs, content or not, names or not."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from models.data.corpus import Example

WORD = r"(?:[£$€](?=\d))?\w+"
TOKEN = re.compile(
    rf"""
    's\b                   # of "it's" and "Cambridge's", so that a name stays a name
    | {WORD}               # a word or an amount, which goes on with
      (?: -{WORD}          #   a hyphen inside: family-friendly, £20-25, £20-£25
        | '(?!s\b)\w+      #   an apostrophe inside: isn't, you'll
        | (?<=\d)[.,:]\d+  #   more of a number: 20.00, 1,000, 12:30
      )*
    | [^\w\s]              # any other sign stands alone
    """,
    re.VERBOSE,
)
CASED_TOKEN = re.compile(TOKEN.pattern, TOKEN.flags | re.IGNORECASE)
SENTENCE_ENDS = (".", "!", "?")
MIN_USES = 3  # within sentences; rarer words stay lower-cased


def tokenise(text: str) -> list[str]:
    """Lower-cased words, with punctuation apart.

    Hyphens, apostrophes and currency signs stay inside a word, except that a final 's is a word
    of its own. An accent counts the same however it is encoded, and so does an apostrophe.
    """
    return TOKEN.findall(_normalised(text).lower())


def cased_tokens(text: str) -> list[str]:
    """What `tokenise` finds, before it is lower-cased."""
    return CASED_TOKEN.findall(_normalised(text))


def is_spoken(word: str) -> bool:
    """Whether it has a letter or a digit: punctuation has none."""
    return any(character.isalnum() for character in word)


def content_words(words: Sequence[str], limit: int = 10) -> list[str]:
    """The first `limit` different content words, in the order of the sentence.

    Neither stop words nor punctuation count. A sentence of stop words alone keeps them, since a
    bag must say something.
    """
    spoken = [word for word in dict.fromkeys(words) if is_spoken(word)]
    return ([word for word in spoken if word not in stop_words()] or spoken)[:limit]


@cache
def stop_words() -> frozenset[str]:
    lines = Path(__file__).with_name("stop_words.txt").read_text().splitlines()
    return frozenset(word for line in lines if line[0] != "#" for word in line.split())


def starts_of_sentences(words: Iterable[str]) -> Iterator[bool]:
    """Whether each word is the first of a sentence; signs before it do not count as words."""
    starts = True
    for word in words:
        spoken = is_spoken(word)
        yield starts and spoken
        starts = word in SENTENCE_ENDS or (starts and not spoken)


def learn_casing(examples: Iterable[Example]) -> dict[str, str]:
    """The usual form of each word that is not usually lower-cased: "Italian", "I", "TV".

    A word counts if it is used often enough, and more than half of its uses share a form. The first
    word of a sentence tells nothing and does not count, nor does what key marks stand for: a
    restaurant called The Rice Boat would make rice a name.
    """
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        tokens = cased_tokens(example.text)
        starts = starts_of_sentences(tokens)
        for token, starts_sentence, word in zip(tokens, starts, example.words, strict=False):
            if not starts_sentence and token.lower() == word:
                forms[word][token] += 1
    usual = {word: uses.most_common(1)[0] for word, uses in forms.items()}
    return {
        word: form
        for word, (form, count) in usual.items()
        if form != word and forms[word].total() >= MIN_USES and 2 * count > forms[word].total()
    }


def _normalised(text: str) -> str:
    """The text with one way to write accents and apostrophes."""
    return unicodedata.normalize("NFC", text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
