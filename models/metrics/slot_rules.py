"""Rules that find the value of a slot in a text, and the phrases that they are made of.

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
    """A rule made of regular expressions for whole words."""
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


def _level(adjectives: str, noun: str, other: str) -> str:
    """An adjective of a noun: before it ("low price") or after it ("the price is quite low").

    After it, the adjective must not belong to another noun ("of price and low rating"); and where
    a figure follows, the figure is the value, not the adjective ("an average rating of 1").
    """
    before = r"(?:[- ](?:customers?'?s?|consumer|user|overall|food))*[- ]"
    between = (
        r"(?:[- ](?:ranges?|ratings?|reviews?|is|are|was|were|of|as|being|an?|at|in|on|the|by|from|"
        r"to|be|their|its|customers?|they|it|which|that|has|have|been|very|quite|only|just|pretty|"
        r"rather|fairly|relatively|considered|listed))*[,:;]?[- ]['\"]?"
    )
    no_figure = (
        r"(?!(?:[- ](?:range|is|of|at|for|a|meal|being|customer|rating))*"
        r"[- ](?:more|less|over|under|below|above|£? ?[0-9]|one|three|five))"
    )
    return (
        rf"(?:{adjectives}){before}{noun}{no_figure}|"
        rf"{noun}{between}(?:{adjectives})(?!{before}{other}){no_figure}"
    )


_PRICE = r"(?:pric(?:e|es|ed|ing)|costs?|costing)"
_RATING = r"(?:rat(?:e|es|ed|ing|ings)|reviews?|reviewed|scores?|scored|stars?|feedback)"
AVERAGE = r"(?<!above[- ])(?<!below[- ])(?<!than[- ])average(?:ly)?"


def of_price(adjectives: str) -> str:
    return _level(adjectives, _PRICE, _RATING)


def of_rating(adjectives: str) -> str:
    return _level(adjectives, _RATING, _PRICE)


def stars(number: str) -> list[str]:
    """So many of five; "3 out of 5 stars" has three of them, and not five."""
    return [
        rf"(?:{number})(?:[- ]stars?)?[- ](?:out|of|out of)[- ](?:a possible )?(?:5|five)",
        rf"(?:{number}) ?/ ?5",
        rf"(?<!of )(?<!out )(?<!/)(?:{number})[- ]?stars?",
    ]


TWENTY, TWENTY_FIVE, THIRTY = (
    rf"(?:£|l|gbp|\$)? ?(?:{number})(?:\.00)?(?: ?(?:£|pounds?|gbp|euros?|l))?"
    for number in ("20|twenty", "25|twenty[- ]five", "30|thirty")
)
BELOW = r"(?:less|lower|cheaper|under|below|up to|not? more|within)(?: tha[nt])?[- ]"
ABOVE = r"(?:more|higher|over|above|upwards? of|at least|greater|exceed\w*)(?: tha[nt])?[- ]"
NOT = r"(?:\w*n't|not(?! (?:only|just))|no|non|never|without|nor|neither|isnt|arent)"
FAMILY = r"(?:famil(?:y|ies|ys|y's)|kids?|kid's|child(?:ren)?(?:'?s)?|toddlers?|all ages)"
NO_FAMILY = [
    rf"{NOT}[- ]+(?:(?!but)[\w'/]+[- ]){{0,5}}?{FAMILY}"
    rf"(?: (?:with|of|or|and) (?:\w+ )?{FAMILY})*",
    rf"{FAMILY}(?:[- ](?!but)\w+){{0,4}}[- ](?:{NOT}|unfriendly|unwelcome|prohibited)",
    rf"leave (?:the|your) {FAMILY}",
    r"child[- ]free",
    r"adults?[- ](?:only|oriented|friendly)",
    r"(?:only|for) adults",
]
