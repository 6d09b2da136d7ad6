"""What a sentence of the built-in corpus says, and whether its table says so.

Sentences are delexicalised as in that corpus: names and places nearby are marks, so that only their
presence is checked; other values are words. Not seen are values said twice, and "low", "average"
or "high" where the words around them do not tell a price from a rating.

Cues say what is meant. A cue is a phrase of the grammar, or a stretch of one that holds its value
and can mean nothing else: of "at low prices" also "low prices", but not "at low", which may be a
rating. So text that breaks the grammar is understood as far as it is clear.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from models.data.tables import Table
from models.metrics.slot_errors import SlotErrors, compare, total
from models.restaurants import grammar
from models.restaurants.grammar import CHOICE, OPEN_CLASS, SLOT_OF_KEY

Words = tuple[str, ...]

MARKS = frozenset(OPEN_CLASS.values())
VALUE = "{}"  # stands for the value in a phrase


class Meaning(NamedTuple):
    slot: str
    value: str | None  # as tables spell it; None for a mark, which may stand for any


class Phrase(NamedTuple):
    """A phrase of the grammar."""

    meaning: Meaning
    words: Words
    value: range  # where in the words the value stands; the last one where they only imply it


def mentions(words: Sequence[str]) -> list[Meaning]:
    """What the sentence says, in order; each word belongs to one mention at most.

    The longest cue counts. An amount is one even where no table holds it.
    """
    runs = itertools.groupby(words)
    merged = _plain(w for word, run in runs for w in ([word] if word in MARKS else run))
    found, start = [], 0
    while start < len(merged):
        stops = range(len(merged), start, -1)
        stop = next((stop for stop in stops if merged[start:stop] in cues()), start + 1)
        if cue := cues().get(merged[start:stop]):
            found.append(cue)
        elif "£" in merged[start]:
            found.append(Meaning("price", merged[start]))
        start = stop
    return found


def slot_order(words: Sequence[str]) -> tuple[str, ...]:
    """The slots that the sentence mentions, in the order of their first mention."""
    return tuple(dict.fromkeys(mention.slot for mention in mentions(words)))


def restaurant_errors(table: Table, words: Sequence[str]) -> SlotErrors:
    """The errors of one sentence."""
    expected, said = defaultdict[str, set[str | None]](set), defaultdict[str, set[str | None]](set)
    for key, value in table:
        if key not in SLOT_OF_KEY:
            known = ", ".join(SLOT_OF_KEY)
            raise ValueError(f"the built-in corpus has no key {key!r}, only {known}")
        expected[SLOT_OF_KEY[key]].add(None if key in OPEN_CLASS else value.lower())
    for slot, own in mentions(words):
        said[slot].add(own and own.lower())
    errors = (compare(expected[slot], said[slot]) for slot in {*expected, *said})
    return total(errors)._replace(slots=len(table))


def corpus_restaurant_errors(
    tables: Sequence[Table], sentences: Sequence[Sequence[str]]
) -> SlotErrors:
    """The errors of all sentences together, so that long tables weigh more."""
    pairs = zip(tables, sentences, strict=True)
    return total(restaurant_errors(table, words) for table, words in pairs)


@cache
def cues() -> Mapping[Words, Meaning]:
    """The cues by their words: phrases, and stretches of them that hold the whole value.

    One of the words of a stretch must be used for one slot only, and not to connect phrases.
    """
    known = list(known_phrases())
    slots, meanings = defaultdict[str, set[str]](set), defaultdict[Words, set[Meaning]](set)
    for meaning, words, value in known:
        for word in words:
            slots[word].add(meaning.slot)
        for start in range(value.start + 1):
            for stop in range(value.stop, len(words) + 1):
                meanings[words[start:stop]].add(meaning)
    connecting = {
        word for texts in grammar.CONNECTING.values() for text in texts for word in text.split()
    }
    telling = {word for word, own in slots.items() if len(own) == 1} - connecting
    clear = {
        words: meaning
        for words, (meaning, *others) in meanings.items()
        if not others and not telling.isdisjoint(words)
    }
    return clear | {phrase.words: phrase.meaning for phrase in known}


def known_phrases() -> Iterator[Phrase]:
    """Every phrase of the grammar with every value, or its mark, without what leads to it."""
    for key, slot in SLOT_OF_KEY.items():
        for value in (None,) if key in OPEN_CLASS else grammar.VALUES[key]:
            kind = grammar.KIND_OF_VALUE.get(value or "", slot)
            texts = [
                text.rpartition("~")[2] for place in grammar.PLACES for text in place.get(kind, ())
            ]
            inserted = (OPEN_CLASS[slot],) if value is None else tuple(value.lower().split())
            for words in {words for text in texts or [VALUE] for words in expand(text)}:
                start = words.index(VALUE) if VALUE in words else len(words) - 1
                said = inserted if VALUE in words else words[-1:]
                whole = (*words[:start], *said, *words[start + 1 :])
                yield Phrase(Meaning(slot, value), whole, range(start, start + len(said)))


def expand(text: str) -> set[Words]:
    """The phrase with its choices made in every way."""
    choice = CHOICE.search(text)
    if choice is None:
        return {_plain(text.split())}
    before, after = text[: choice.start()], text[choice.end() :]
    return {words for option in choice[1].split("|") for words in expand(before + option + after)}


def _plain(words: Iterable[str]) -> Words:
    """The words with "a" for "an"."""
    return tuple("a" if word == "an" else word for word in words)
