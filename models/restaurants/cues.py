"""Which words say what about a restaurant, drawn from the phrases of the built-in grammar.

A cue is a phrase, or a stretch of one that holds its value and can mean nothing else: of "at low
prices" also "low prices", but not "at low", which may be a rating. So text that breaks the grammar
is understood as far as it is clear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from models.restaurants import phrases
from models.restaurants.grammar import SLOT_OF_KEY, VALUES, kind_of
from models.restaurants.sentences import CHOICE, OPEN_CLASS

Words = tuple[str, ...]

PLACES = (phrases.BEFORE, phrases.FRONT, phrases.AFTER, phrases.CLAUSES, phrases.TOLD)
VALUE = "{}"  # stands for the value in a phrase


class Meaning(NamedTuple):
    slot: str
    value: str | None  # as tables spell it; None for a mark, which may stand for any


class Phrase(NamedTuple):
    """A phrase, or a stretch of one."""

    meaning: Meaning
    words: Words
    value: range  # where in the words the value stands; the last one where they only imply it


@cache
def cues() -> Mapping[Words, Phrase]:
    """The cues by their words."""
    known = list(known_phrases())
    telling = telling_words(known)
    found: dict[Words, dict[Meaning, Phrase]] = defaultdict(dict)
    for stretch in (stretch for phrase in known for stretch in stretches(phrase)):
        found[stretch.words][stretch.meaning] = stretch
    clear = {
        words: stretch
        for words, by_meaning in found.items()
        for stretch in by_meaning.values()
        if len(by_meaning) == 1 and not telling.isdisjoint(words)
    }
    return clear | {phrase.words: phrase for phrase in known}


def known_phrases() -> Iterator[Phrase]:
    """Every phrase of the grammar with every value, without what leads to it."""
    for meaning in known_meanings():
        for words in {words for text in texts_for(meaning) for words in expand(text)}:
            yield filled(meaning, words)


def known_meanings() -> Iterator[Meaning]:
    for key, slot in SLOT_OF_KEY.items():
        for value in (None,) if key in OPEN_CLASS else VALUES[key]:
            yield Meaning(slot, value)


def texts_for(meaning: Meaning) -> list[str]:
    """The grammar's phrases for the meaning, choices and all; a name or a type stands alone."""
    slot, value = meaning
    kind = slot if value is None else kind_of(slot, value)
    texts = [text.rpartition("~")[2] for place in PLACES for text in place.get(kind, ())]
    return texts or [VALUE]


def expand(text: str) -> set[Words]:
    """The phrase with its choices made in every way."""
    choice = CHOICE.search(text)
    if choice is None:
        return {plain(text.split())}
    before, after = text[: choice.start()], text[choice.end() :]
    return {words for option in choice[1].split("|") for words in expand(before + option + after)}


def plain(words: Iterable[str]) -> Words:
    """With "a" for "an"."""
    return tuple("a" if word == "an" else word for word in words)


def filled(meaning: Meaning, words: Words) -> Phrase:
    """The phrase with its value, or its mark, for `{}`."""
    if VALUE not in words:
        return Phrase(meaning, words, range(len(words) - 1, len(words)))
    slot, value = meaning
    inserted = (OPEN_CLASS[slot],) if value is None else tuple(value.lower().split())
    start = words.index(VALUE)
    place = range(start, start + len(inserted))
    return Phrase(meaning, words[:start] + inserted + words[start + 1 :], place)


def telling_words(known: Iterable[Phrase]) -> set[str]:
    """The words that are used for one slot only, and not to connect phrases."""
    slots: dict[str, set[str]] = defaultdict(set)
    for phrase in known:
        for word in phrase.words:
            slots[word].add(phrase.meaning.slot)
    connecting = {
        w for texts in phrases.CONNECTING.values() for text in texts for w in text.split()
    }
    return {word for word, found in slots.items() if len(found) == 1} - connecting


def stretches(phrase: Phrase) -> Iterator[Phrase]:
    """The stretches of the phrase that hold its whole value."""
    meaning, words, value = phrase
    for start in range(value.start + 1):
        for stop in range(value.stop, len(words) + 1):
            shifted = range(value.start - start, value.stop - start)
            yield Phrase(meaning, words[start:stop], shifted)
