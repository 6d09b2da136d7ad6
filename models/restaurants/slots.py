"""What a sentence of the built-in corpus says, and whether its table says so.

Sentences are delexicalised as in that corpus: names and places nearby are marks, so that only their
presence is checked; other values are words. Not seen are values said twice, and "low", "average"
or "high" where the words around them do not tell a price from a rating.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.data.tables import Table
from models.metrics.slot_errors import SlotErrors, compare, total
from models.restaurants.cues import Meaning, Phrase, Words, cues, plain
from models.restaurants.grammar import SLOT_OF_KEY
from models.restaurants.sentences import OPEN_CLASS

MARKS = frozenset(OPEN_CLASS.values())


class Mention(NamedTuple):
    slot: str
    value: str | None  # as tables spell it; None for a mark
    position: int  # of the value; of the last word of the phrase where that only implies it


def mentions(words: Sequence[str]) -> list[Mention]:
    """What the sentence says, in order; each word belongs to one mention at most."""
    places, merged = _merge_marks(words)
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
    expected = {_meaning(key, value) for key, value in table}
    said = {_folded(mention.slot, mention.value) for mention in mentions(words)}
    slots = {slot for slot, _ in expected | said}
    errors = (compare(_of_slot(expected, slot), _of_slot(said, slot)) for slot in slots)
    return total(errors)._replace(slots=len(table))


def corpus_restaurant_errors(
    tables: Sequence[Table], sentences: Sequence[Sequence[str]]
) -> SlotErrors:
    """The errors of all sentences together, so that long tables weigh more."""
    pairs = zip(tables, sentences, strict=True)
    return total(restaurant_errors(table, words) for table, words in pairs)


def _merge_marks(words: Sequence[str]) -> tuple[list[int], Words]:
    """The sentence with one mark for each run of it, and where its words stood."""
    places = [i for i, w in enumerate(words) if i == 0 or w not in MARKS or w != words[i - 1]]
    return places, plain(words[i] for i in places)


def _longest_cue(words: Words, start: int) -> Phrase | None:
    """The longest cue that starts here. An amount is one even where no table holds it."""
    for stop in range(len(words), start, -1):
        cue = cues().get(words[start:stop])
        if cue is not None:
            return cue
    amount = words[start]
    return Phrase(Meaning("price", amount), (amount,), range(1)) if "£" in amount else None


def _meaning(key: str, value: str) -> Meaning:
    """Of an entry of a table."""
    if key not in SLOT_OF_KEY:
        raise ValueError(f"the built-in corpus has no key {key!r}, only {', '.join(SLOT_OF_KEY)}")
    return _folded(SLOT_OF_KEY[key], None if key in OPEN_CLASS else value)


def _folded(slot: str, value: str | None) -> Meaning:
    """Upper and lower case mean the same."""
    return Meaning(slot, None if value is None else value.lower())


def _of_slot(meanings: set[Meaning], slot: str) -> set[Meaning]:
    return {meaning for meaning in meanings if meaning.slot == slot}
