"""Which words are not written in lower case, learnt from a corpus."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from models.data.content_words import is_spoken
from models.data.corpus import Example
from models.data.tokens import TOKEN, normalised

SENTENCE_ENDS = (".", "!", "?")
MIN_USES = 3  # within sentences; rarer words stay lower-cased
CASED_TOKEN = re.compile(TOKEN.pattern, TOKEN.flags | re.IGNORECASE)


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


def cased_tokens(text: str) -> list[str]:
    """What `tokenise` finds, before it is lower-cased."""
    return CASED_TOKEN.findall(normalised(text))


def starts_of_sentences(words: Sequence[str]) -> Iterator[bool]:
    """Whether each word is the first of a sentence; signs before it do not count as words."""
    starts = True
    for word in words:
        spoken = is_spoken(word)
        yield starts and spoken
        starts = word in SENTENCE_ENDS or (starts and not spoken)
