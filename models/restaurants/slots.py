"""What a sentence of the built-in corpus says, and whether its table says so.

Sentences are delexicalised as in that corpus: names and places nearby are marks, so that only their
presence is checked; other values are words. Not seen are values said twice, and "low", "average"
or "high" where the words around them do not tell a price from a rating.

Cues say what is meant. A cue is a phrase of the grammar, or a stretch of one that holds its value
and can mean nothing else: of "at low prices" also "low prices", but not "at low", which may be a
rating. So text that breaks the grammar is understood as far as it is clear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from models.data.tables import Table
from models.metrics.slot_errors import SlotErrors, compare, total
from models.restaurants.grammar import CONNECTING, PLACES, SLOT_OF_KEY, VALUES, kind_of
from models.restaurants.sentences import CHOICE, OPEN_CLASS

Words = tuple[str, ...]

MARKS = frozenset(OPEN_CLASS.values())
VALUE = "{}"  # stands for the value in a phrase


class Meaning(NamedTuple):
    slot: str
    value: str | None  # as tables spell it; None for a mark, which may stand for any

    def folded(self) -> Meaning:
        """Upper and lower case mean the same."""
        return Meaning(self.slot, self.value and self.value.lower())


class Mention(NamedTuple):
    slot: str
    value: str | None
    position: int  # of the value; of the last word of the phrase where that only implies it


class Phrase(NamedTuple):
    """A phrase of the grammar, or a stretch of one."""

    meaning: Meaning
    words: Words
    value: range  # where in the words the value stands; the last one where they only imply it


def mentions(words: Sequence[str]) -> list[Mention]:
    """What the sentence says, in order; each word belongs to one mention at most."""
    places = [i for i, w in enumerate(words) if i == 0 or w not in MARKS or w != words[i - 1]]
    merged = _plain(words[i] for i in places)  # with one mark for each run of it
    found, start = [], 0
    while start < len(merged):
        cue = _longest_cue(merged, start)
        if cue is not None:
            found.append(Mention(*cue.meaning, position=places[start + cue.value.start]))
        start += len(cue.words) if cue is not None else 1
    return found


def slot_order(words: Sequence[str]) -> tuple[str, ...]:
    """The slots that the sentence mentions, in the order of their first mention."""
    return tuple(dict.fromkeys(mention.slot for mention in mentions(words)))


def restaurant_errors(table: Table, words: Sequence[str]) -> SlotErrors:
    """The errors of one sentence."""
    expected, said = defaultdict[str, set[Meaning]](set), defaultdict[str, set[Meaning]](set)
    for key, value in table:
        if key not in SLOT_OF_KEY:
            known = ", ".join(SLOT_OF_KEY)
            raise ValueError(f"the built-in corpus has no key {key!r}, only {known}")
        meaning = Meaning(SLOT_OF_KEY[key], None if key in OPEN_CLASS else value)
        expected[meaning.slot].add(meaning.folded())
    for mention in mentions(words):
        said[mention.slot].add(Meaning(mention.slot, mention.value).folded())
    errors = (compare(expected[slot], said[slot]) for slot in {*expected, *said})
    return total(errors)._replace(slots=len(table))


def corpus_restaurant_errors(
    tables: Sequence[Table], sentences: Sequence[Sequence[str]]
) -> SlotErrors:
    """The errors of all sentences together, so that long tables weigh more."""
    pairs = zip(tables, sentences, strict=True)
    return total(restaurant_errors(table, words) for table, words in pairs)


def _longest_cue(words: Words, start: int) -> Phrase | None:
    """The longest cue that starts here. An amount is one even where no table holds it."""
    for stop in range(len(words), start, -1):
        cue = cues().get(words[start:stop])
        if cue is not None:
            return cue
    amount = words[start]
    return Phrase(Meaning("price", amount), (amount,), range(1)) if "£" in amount else None


@cache
def cues() -> Mapping[Words, Phrase]:
    """The cues by their words."""
    known = list(known_phrases())
    telling = _telling_words(known)
    found: dict[Words, dict[Meaning, Phrase]] = defaultdict(dict)
    for stretch in (stretch for phrase in known for stretch in _stretches(phrase)):
        found[stretch.words][stretch.meaning] = stretch
    clear = {
        words: stretch
        for words, by_meaning in found.items()
        for stretch in by_meaning.values()
        if len(by_meaning) == 1 and not telling.isdisjoint(words)
    }
    return clear | {phrase.words: phrase for phrase in known}


def known_phrases() -> Iterator[Phrase]:
    """Every phrase of the grammar with every value, or its mark, without what leads to it."""
    for key, slot in SLOT_OF_KEY.items():
        for value in (None,) if key in OPEN_CLASS else VALUES[key]:
            kind = slot if value is None else kind_of(slot, value)
            texts = [text.rpartition("~")[2] for place in PLACES for text in place.get(kind, ())]
            inserted = (OPEN_CLASS[slot],) if value is None else tuple(value.lower().split())
            for words in {words for text in texts or [VALUE] for words in expand(text)}:
                yield _filled(Meaning(slot, value), words, inserted)


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


def _filled(meaning: Meaning, words: Words, value: Words) -> Phrase:
    """The phrase with its value for `{}`."""
    if VALUE not in words:
        return Phrase(meaning, words, range(len(words) - 1, len(words)))
    start = words.index(VALUE)
    whole = words[:start] + value + words[start + 1 :]
    return Phrase(meaning, whole, range(start, start + len(value)))


def _telling_words(known: Iterable[Phrase]) -> set[str]:
    """The words that are used for one slot only, and not to connect phrases."""
    slots: dict[str, set[str]] = defaultdict(set)
    for phrase in known:
        for word in phrase.words:
            slots[word].add(phrase.meaning.slot)
    connecting = {word for texts in CONNECTING.values() for text in texts for word in text.split()}
    return {word for word, found in slots.items() if len(found) == 1} - connecting


def _stretches(phrase: Phrase) -> Iterator[Phrase]:
    """The stretches of the phrase that hold its whole value."""
    meaning, words, value = phrase
    for start in range(value.start + 1):
        for stop in range(value.stop, len(words) + 1):
            shifted = range(value.start - start, value.stop - start)
            yield Phrase(meaning, words[start:stop], shifted)
