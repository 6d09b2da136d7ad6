"""Rules that find the value of a slot in a text: `slot_rules.yaml`, read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from models.data.phrases import lines_of, read_yaml

STRAIGHT = str.maketrans("\u2018\u2019\u2013\u2014", "''--")
NOUNS = {"priceRange": ("price", "rating"), "customer rating": ("rating", "price")}
STARS = (  # so many of five; "3 out of 5 stars" has three of them, and not five
    r"(?:{0})(?:[- ]stars?)?[- ](?:out|of|out of)[- ](?:a possible )?(?:5|five)",
    r"(?:{0}) ?/ ?5",
    r"(?<!of )(?<!out )(?<!/)(?:{0})[- ]?stars?",
)


class Rule(NamedTuple):
    says: re.Pattern[str]
    suggests: re.Pattern[str]
    apart_from: re.Pattern[str]  # taken out of the text first

    def is_said(self, text: str) -> bool:
        return bool(self.says.search(self.apart_from.sub(" , ", text)))

    def is_met(self, text: str) -> bool:
        return self.is_said(text) or bool(self.suggests.search(self.apart_from.sub(" , ", text)))


@cache
def known_values() -> tuple[list[str], dict[str, dict[str, str]], dict[str, dict[str, Rule]]]:
    """The places of E2E, what values are the same by key, and rules by key and value."""
    known = read_yaml(Path(__file__).with_name("slot_rules.yaml"))
    rules = {
        key: {value: _read_rule(key, entry, known["fragments"]) for value, entry in own.items()}
        for key, own in known["rules"].items()
    }
    return known["places"], known["same"], rules


def verbatim(value: str) -> Rule:
    """The value itself."""
    return _rule([re.escape(plain(value))])


@cache
def place(name: str) -> Rule:
    """A place by its full name; without its "The" it is only suggested."""
    full = re.escape(plain(name)) + "(?:'?s)?"
    return _rule([full], [full.removeprefix(r"the\ ")])


def plain(text: str) -> str:
    """Lower-cased, without accents, with straight quotes and dashes, and single spaces."""
    decomposed = unicodedata.normalize("NFKD", text.lower().translate(STRAIGHT))
    letters = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(letters.split())


def _rule(*patterns: Sequence[str]) -> Rule:
    """A rule of regular expressions for whole words; none of them match nothing."""
    given = [*patterns, (), ()][:3]
    return Rule(*(re.compile(rf"(?<!\w)(?:{'|'.join(own) or '(?!)'})(?!\w)") for own in given))


def _read_rule(key: str, entry: dict[str, Any], fragments: dict[str, str]) -> Rule:
    says, suggests = entry.get("says", ""), entry.get("suggests", "")
    if "stars" in entry:
        says = "\n".join([says, *(pattern.format(entry["stars"]) for pattern in STARS)])
    if "level" in entry:
        says += f"\n{_level(key, entry['level'])}"
    if "suggested level" in entry:
        suggests += f"\n{_level(key, entry['suggested level'])}"
    parts = (says, suggests, entry.get("apart from", ""))
    return _rule(*(list(filter(None, lines_of(part, fragments))) for part in parts))


def _level(key: str, adjectives: str) -> str:
    """An adjective of the key's noun, before it or after it.

    After it, the adjective must not belong to the other noun: "of price and low rating".
    """
    noun, other = NOUNS[key]
    return (
        rf"(?:{adjectives})<before the noun><{noun}><no figure>|"
        rf"<{noun}><after the noun>(?:{adjectives})(?!<before the noun><{other}>)<no figure>"
    )
