"""Does a text say what its table says? The slot error rate of E2E.

It is a measure by rules (`slot_rules.yaml`), good for comparing systems, and no judgement
of a single sentence. It does not see

- who is near whom: the name and the landmark may be swapped;
- misspelt or unusual wording ("Crown Plaza", "a dollar sign on the menu"): counted as missing;
- places that E2E does not know, where the table does not name them;
- a value said twice, or the difference between values that mean the same ("high", "5 out of 5").

Keys that are not of E2E are met by their value, word for word.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from models.data.tables import Table
from models.metrics.slot_rules import Rule, known_values, place, plain, verbatim

PLACE_KEYS = ("name", "near")
MASK = " @ "  # stands for a place, so that "Raja Indian Cuisine" does not say "Indian"


class SlotErrors(NamedTuple):
    missing: int  # the text gives no value
    wrong: int  # the text gives another value instead
    added: int  # the text gives a value that the table does not hold, and that replaces none
    slots: int = 0  # of the table

    @property
    def rate(self) -> float:
        """Errors per slot of the table; more than 1 where much is added."""
        return (self.missing + self.wrong + self.added) / self.slots


def slot_errors(table: Table, text: str) -> SlotErrors:
    """The errors of one text."""
    _, same, rules = known_values()
    values = dict(table)
    own_places = {values.pop(key) for key in PLACE_KEYS if key in values}
    places, rest = _split_places(own_places, plain(text))
    errors = [compare(own_places, places)]
    for key, own_rules in rules.items():
        value = plain(values.pop(key, ""))
        errors.append(_compare(own_rules, same.get(key, {}).get(value, value), rest))
    errors += [SlotErrors(int(not verbatim(v).is_met(rest)), 0, 0) for v in values.values()]
    return total(errors)._replace(slots=len(table))


def corpus_slot_errors(tables: Sequence[Table], texts: Sequence[str]) -> SlotErrors:
    """The errors of all texts together, so that long tables weigh more."""
    return total(slot_errors(table, text) for table, text in zip(tables, texts, strict=True))


def total(errors: Iterable[SlotErrors]) -> SlotErrors:
    return SlotErrors(*map(sum, zip(SlotErrors(0, 0, 0), *errors, strict=True)))


def compare(expected: Set[Hashable], said: Set[Hashable]) -> SlotErrors:
    """A value said in place of an expected one is one error, not two."""
    absent, others = len(expected - said), len(said - expected)
    wrong = min(absent, others)
    return SlotErrors(missing=absent - wrong, wrong=wrong, added=others - wrong)


def _split_places(own: set[str], text: str) -> tuple[set[str], str]:
    """The places that the text names, and the text without them."""
    found = set()
    for name in sorted({*own, *known_values()[0]}, key=lambda name: (-len(name), name)):
        rule = place(name)
        text, times = (rule.suggests if name in own else rule.says).subn(MASK, text)
        if times:
            found.add(name)
    return found, text


def _compare(rules: Mapping[str, Rule], expected: str, text: str) -> SlotErrors:
    """The errors of one key, whose value may be missing from the table: an empty one."""
    others = sum(rule.is_said(text) for value, rule in rules.items() if value != expected)
    if not expected or rules.get(expected, verbatim(expected)).is_met(text):
        return SlotErrors(missing=0, wrong=0, added=others)
    wrong = min(others, 1)
    return SlotErrors(missing=1 - wrong, wrong=wrong, added=others - wrong)
