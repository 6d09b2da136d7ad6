"""Rules that find the value of a slot in a text.

A rule has two kinds of patterns, for `plain` text:

- `says`: words that state the value. They meet the slot, and where the table does not hold the
  value they are an error.
- `suggests`: words that people use for the value, but for other things too ("British" for English
  food). They meet the slot, and are never an error.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

STRAIGHT = str.maketrans("\u2018\u2019\u2013\u2014", "''--")


class Rule(NamedTuple):
    says: re.Pattern[str]
    suggests: re.Pattern[str]
    apart_from: re.Pattern[str]  # taken out of the text first

    def is_said(self, text: str) -> bool:
        return bool(self.says.search(self.apart_from.sub(" , ", text)))

    def is_met(self, text: str) -> bool:
        return self.is_said(text) or bool(self.suggests.search(self.apart_from.sub(" , ", text)))


def rule(says: Sequence[str], suggests: Sequence[str] = (), apart_from: Sequence[str] = ()) -> Rule:
    """From regular expressions for whole words."""
    return Rule(_any_of(says), _any_of(suggests), _any_of(apart_from))


def verbatim(value: str) -> Rule:
    """The value itself."""
    return rule([re.escape(plain(value))])


def place(name: str) -> Rule:
    """A place by its full name; without its "The" it is only suggested."""
    full = re.escape(plain(name)) + "(?:'?s)?"
    return rule([full], [full.removeprefix(r"the\ ")])


def plain(text: str) -> str:
    """Lower-cased, without accents, with straight quotes and dashes, and single spaces."""
    decomposed = unicodedata.normalize("NFKD", text.lower().translate(STRAIGHT))
    letters = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(letters.split())


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    """Whole words; nothing at all matches no pattern."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns) or '(?!)'})(?!\w)")
