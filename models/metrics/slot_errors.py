"""Does a text say what its table says? The slot error rate of E2E, by rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from models.metrics.slot_rules import PLACES, RULES, SAME, Rule, place, plain, verbatim

PLACE_KEYS = ("name", "near")
MASK = " # "  # stands for a place, so that "Raja Indian Cuisine" does not say "Indian"


class SlotErrors(NamedTuple):
    """Counts of slots."""

    missing: int = 0  # the text gives no value
    wrong: int = 0  # the text gives another value instead
    added: int = 0  # a value that the table does not hold, and that replaces none
    slots: int = 0  # of the table

    @property
    def rate(self) -> float:
        """Errors per slot of the table."""
        return (self.missing + self.wrong + self.added) / self.slots


def slot_errors(table: Sequence[tuple[str, str]], text: str) -> SlotErrors:
    places = {key: value for key, value in table if key in PLACE_KEYS}
    others = {key: value for key, value in table if key not in PLACE_KEYS}
    found, rest = _split_places(tuple(places.values()), plain(text))
    verdicts = [_compare_places(set(places.values()), found)]
    verdicts += [_compare(key, others.get(key), rest) for key in RULES]
    verdicts += [_compare_unknown(v, rest) for k, v in others.items() if k not in RULES]
    return add(verdicts)._replace(slots=len(table))


def add(counts: Iterable[SlotErrors]) -> SlotErrors:
    return SlotErrors(*(sum(column) for column in zip(*counts, strict=True)))


def _split_places(own: tuple[str, ...], text: str) -> tuple[set[str], str]:
    """The places that the text names, and the text without them."""
    found = set()
    for name in sorted({*own, *PLACES}, key=len, reverse=True):
        rule = _place(name)
        pattern = rule.suggests if name in own and rule.suggests else rule.says
        text, times = pattern.subn(MASK, text)
        if times:
            found.add(name)
    return found, text


def _compare_places(expected: set[str], found: set[str]) -> SlotErrors:
    absent, others = len(expected - found), len(found - expected)
    wrong = min(absent, others)
    return SlotErrors(missing=absent - wrong, wrong=wrong, added=others - wrong)


def _compare(key: str, value: str | None, text: str) -> SlotErrors:
    rules = RULES[key]
    expected = None if value is None else SAME.get(key, {}).get(value.lower(), value.lower())
    said = {v for v, rule in rules.items() if v != expected and rule.is_said(text)}
    if expected is None:
        return SlotErrors(added=len(said))
    if rules.get(expected, verbatim(expected)).is_met(text):
        return SlotErrors(added=len(said))
    if said:
        return SlotErrors(wrong=1, added=len(said) - 1)
    return SlotErrors(missing=1)


def _compare_unknown(value: str, text: str) -> SlotErrors:
    return SlotErrors(missing=int(not verbatim(value).is_met(text)))


_place = cache(place)
