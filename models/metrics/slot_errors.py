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

import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from models.data.phrases import lines_of, read_yaml
from models.data.tables import Table

PLACE_KEYS = ("name", "near")
MASK = " @ "  # stands for a place, so that "Raja Indian Cuisine" does not say "Indian"
STRAIGHT = str.maketrans("\u2018\u2019\u2013\u2014", "''--")
NOUNS = {"priceRange": ("price", "rating"), "customer rating": ("rating", "price")}
STARS = (  # so many of five; "3 out of 5 stars" has three of them, and not five
    r"(?:{0})(?:[- ]stars?)?[- ](?:out|of|out of)[- ](?:a possible )?(?:5|five)",
    r"(?:{0}) ?/ ?5",
    r"(?<!of )(?<!out )(?<!/)(?:{0})[- ]?stars?",
)


class SlotErrors(NamedTuple):
    missing: int  # the text gives no value
    wrong: int  # the text gives another value instead
    added: int  # the text gives a value that the table does not hold, and that replaces none
    slots: int = 0  # of the table

    @property
    def rate(self) -> float:
        """Errors per slot of the table; more than 1 where much is added."""
        return (self.missing + self.wrong + self.added) / self.slots


class Rule(NamedTuple):
    """How a text says a value: see `slot_rules.yaml`."""

    says: re.Pattern[str]
    suggests: re.Pattern[str]
    apart_from: re.Pattern[str]

    def is_said(self, text: str) -> bool:
        return bool(self.says.search(self.apart_from.sub(" , ", text)))

    def is_met(self, text: str) -> bool:
        return self.is_said(text) or bool(self.suggests.search(self.apart_from.sub(" , ", text)))


def slot_errors(table: Table, text: str) -> SlotErrors:
    """The errors of one text."""
    _, same, rules = _known_values()
    values = dict(table)
    own_places = {values.pop(key) for key in PLACE_KEYS if key in values}
    places, rest = _split_places(own_places, _plain(text))
    errors = [compare(own_places, places)]
    for key in rules | values:
        value = _plain(values.get(key, ""))
        value = same.get(key, {}).get(value, value)
        errors.append(compare({value} - {""}, _said(rules.get(key, {}), value, rest)))
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
    for name in sorted({*own, *_known_values()[0]}, key=lambda name: (-len(name), name)):
        rule = _place(name)
        text, times = (rule.suggests if name in own else rule.says).subn(MASK, text)
        if times:
            found.add(name)
    return found, text


def _said(rules: Mapping[str, Rule], expected: str, text: str) -> set[str]:
    """The values of one key that the text says; of the expected one, a suggestion is enough."""
    said = {value for value, rule in rules.items() if value != expected and rule.is_said(text)}
    rule = rules.get(expected) or _rule([re.escape(expected)])
    return said | {expected} if rule.is_met(text) else said


@cache
def _known_values() -> tuple[list[str], dict[str, dict[str, str]], dict[str, dict[str, Rule]]]:
    """The places of E2E, what values are the same by key, and rules by key and value."""
    known = read_yaml(Path(__file__).with_name("slot_rules.yaml"))
    rules = {
        key: {value: _read_rule(key, entry, known["fragments"]) for value, entry in own.items()}
        for key, own in known["rules"].items()
    }
    return known["places"], known["same"], rules


@cache
def _place(name: str) -> Rule:
    """A place by its full name; without its "The" it is only suggested."""
    full = re.escape(_plain(name)) + "(?:'?s)?"
    return _rule([full], [full.removeprefix(r"the\ ")])


def _plain(text: str) -> str:
    """Lower-cased, without accents, with straight quotes and dashes, and single spaces."""
    decomposed = unicodedata.normalize("NFKD", text.lower().translate(STRAIGHT))
    letters = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(letters.split())


def _read_rule(key: str, entry: Mapping[str, Any], fragments: Mapping[str, str]) -> Rule:
    stars = [pattern.format(entry["stars"]) for pattern in STARS if "stars" in entry]
    says = [entry.get("says", ""), *stars, _level(key, entry.get("level"))]
    suggests = [entry.get("suggests", ""), _level(key, entry.get("suggested level"))]
    parts = (says, suggests, [entry.get("apart from", "")])
    return _rule(*(lines_of("\n".join(part), fragments) for part in parts))


def _level(key: str, adjectives: str | None) -> str:
    """An adjective of the key's noun, before it or after it.

    After it, the adjective must not belong to the other noun: "of price and low rating".
    """
    if adjectives is None:
        return ""
    noun, other = NOUNS[key]
    return (
        rf"(?:{adjectives})<before the noun><{noun}><no figure>|"
        rf"<{noun}><after the noun>(?:{adjectives})(?!<before the noun><{other}>)<no figure>"
    )


def _rule(*patterns: Sequence[str]) -> Rule:
    """A rule of regular expressions for whole words; none of them match nothing."""
    whole = ["|".join(filter(None, own)) or "(?!)" for own in (*patterns, (), ())]
    return Rule(*(re.compile(rf"(?<!\w)(?:{own})(?!\w)") for own in whole[:3]))
