"""Upper and lower case: learnt for words, set for sentences."""

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

    The first word of a sentence tells nothing and does not count, nor does what key marks stand
    for: a restaurant called The Rice Boat would make rice a name.
    """
    return _usual_forms(form for example in examples for form in _forms_within(example))


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


def raise_first_letter(text: str) -> str:
    """For the start of a sentence; what has capitals already, such as eBay, stays as it is."""
    first = text[:1].upper()
    return first + text[1:] if text == text.lower() and len(first) == 1 else text


def _forms_within(example: Example) -> Iterator[str]:
    """Within sentences, without those of words that are marks now, or were cut off."""
    tokens = cased_tokens(example.text)
    starts = starts_of_sentences(tokens)
    for token, starts_sentence, word in zip(tokens, starts, example.words, strict=False):
        if not starts_sentence and token.lower() == word:
            yield token


def _usual_forms(forms: Iterable[str]) -> dict[str, str]:
    """Of every word used often enough, if more than half of its uses share a form with capitals."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for form in forms:
        counts[form.lower()][form] += 1
    usual = {word: uses.most_common(1)[0] for word, uses in counts.items()}
    return {
        word: form
        for word, (form, count) in usual.items()
        if form != word and counts[word].total() >= MIN_USES and 2 * count > counts[word].total()
    }
