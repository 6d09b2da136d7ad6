"""How the values of an E2E table are said in English, as patterns.

The patterns are for `plain` text. Each value has two kinds of them:

- `says`: words that state the value. They meet the slot, and where the table does not hold the
  value they are an error.
- `suggests`: words that people use for the value, but for other things too ("British", "good
  prices"). They meet the slot, and are never an error.

Values that E2E treats as one are one: a price of "cheap" and "less than £20", a customer rating of
"low" and "1 out of 5", and so on up the scale.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

_NEVER = r"(?!)"
STRAIGHT = str.maketrans("\u2018\u2019\u2013\u2014", "''--")


class Rule(NamedTuple):
    says: re.Pattern[str]
    suggests: re.Pattern[str] | None = None
    apart_from: re.Pattern[str] | None = None  # taken out of the text first

    def is_said(self, text: str) -> bool:
        return bool(self.says.search(self._rest(text)))

    def is_met(self, text: str) -> bool:
        suggested = self.suggests is not None and self.suggests.search(self._rest(text))
        return bool(suggested) or self.is_said(text)

    def _rest(self, text: str) -> str:
        return text if self.apart_from is None else self.apart_from.sub(" , ", text)


def plain(text: str) -> str:
    """Lower-cased, without accents, with straight quotes and dashes, and single spaces."""
    decomposed = unicodedata.normalize("NFKD", text.lower().translate(STRAIGHT))
    letters = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(letters.split())


def verbatim(value: str) -> Rule:
    """The value itself, as whole words."""
    return _rule([re.escape(plain(value))])


def _rule(says: list[str], suggests: list[str] | None = None) -> Rule:
    return Rule(_whole_words(says), _whole_words(suggests) if suggests else None)


def _whole_words(alternatives: list[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(alternatives)})(?!\w)")


def _level(adjectives: str, noun: str, other: str) -> str:
    """An adjective of a noun: before it ("low price") or after it ("the price is quite low").

    After it, the adjective must not belong to another noun ("of price and low rating"); and where
    a figure follows, the figure is the value, not the adjective ("an average rating of 1").
    """
    before = r"(?:[- ](?:customers?'?s?|consumer|user|overall|food|and))*[- ]"
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
_AVERAGE = r"(?<!above[- ])(?<!below[- ])(?<!than[- ])average(?:ly)?"


def _price(adjectives: str) -> str:
    return _level(adjectives, _PRICE, _RATING)


def _rating(adjectives: str) -> str:
    return _level(adjectives, _RATING, _PRICE)


def _stars(number: str) -> list[str]:
    """ "3 out of 5 stars" has three of them, and not five."""
    return [
        rf"(?:{number})(?:[- ]stars?)?[- ](?:out|of|out of)[- ](?:a possible )?(?:5|five)",
        rf"(?:{number}) ?/ ?5",
        rf"(?<!of )(?<!out )(?<!/)(?:{number})[- ]?stars?",
    ]


_TWENTY, _TWENTY_FIVE, _THIRTY = (
    rf"(?:£|l|gbp|\$)? ?(?:{number})(?:\.00)?(?: ?(?:£|pounds?|gbp|euros?|l))?"
    for number in ("20|twenty", "25|twenty[- ]five", "30|thirty")
)
_BELOW = r"(?:less|lower|cheaper|under|below|up to|not? more|within)(?: tha[nt])?[- ]"
_ABOVE = r"(?:more|higher|over|above|upwards? of|at least|greater|exceed\w*)(?: tha[nt])?[- ]"
_NOT = r"(?:\w*n't|not(?! (?:only|just))|no|non|never|without|nor|neither|isnt|arent)"
_FAMILY = r"(?:famil(?:y|ies|ys|y's)|kids?|kid's|child(?:ren)?(?:'?s)?|toddlers?|all ages)"
_NO_FAMILY = [
    rf"{_NOT}[- ]+(?:[\w'/]+[- ]){{0,5}}?{_FAMILY}(?: (?:with|of|or|and) (?:\w+ )?{_FAMILY})*",
    rf"{_FAMILY}(?:[- ](?!but)\w+){{0,4}}[- ](?:{_NOT}|unfriendly|unwelcome|prohibited|free)",
    rf"leave (?:the|your) {_FAMILY}",
    r"adults?[- ](?:only|oriented|friendly)",
    r"(?:only|for) adults",
]

_EAT_TYPES = {
    "pub": _rule([r"pubs?", r"public house"], [r"bar", r"tavern", r"inn"]),
    "coffee shop": _rule([r"coffee[- ]?(?:shop|house|bar|place)s?"], [r"coffee", r"cafes?"]),
    "restaurant": _rule([_NEVER], [r"restaurants?", r"eatery", r"diner", r"bistro", r"place"]),
}
_FOODS = {
    "chinese": _rule([r"chinese"], [r"asian", r"oriental"]),
    "english": _rule([r"english"], [r"british", r"fish and chips"]),
    "fast food": _rule([r"fast[- ]?foods?"], [r"burgers?", r"junk food"]),
    "french": _rule([r"french"], [r"france"]),
    "indian": _rule([r"indian"], [r"curr(?:y|ies)", r"india"]),
    "italian": _rule([r"italian"], [r"pasta", r"pizzas?", r"italy"]),
    "japanese": _rule([r"japanese"], [r"asian", r"sushi", r"japan"]),
}
_PRICES = {
    "low": _rule(
        [
            r"cheap(?:er|ly|est)?",
            r"inexpensive(?:ly)?",
            _price(r"low(?:er|est)?|cheap|small"),
            rf"{_BELOW}(?:an? )?(?:average of )?{_TWENTY}",
        ],
        [r"affordabl[ey]", r"budget", r"reasonabl[ey]", r"economical", _price(r"good|great|decent")],
    ),
    "moderate": _rule(
        [
            r"mid(?:dle)?[- ]?(?:pric\w+|range|cost)",
            _price(rf"moderate(?:ly)?|{_AVERAGE}|mid|mid(?:dle)?[- ]range|medium"),
            rf"{_TWENTY} ?(?:-|to|and|or|/|~) ?{_TWENTY_FIVE}",
        ],
        [r"moderate(?:ly)?", r"reasonabl[ey]", r"affordabl[ey]", _price(r"good|decent|fair(?:ly)?")],
    ),
    "high": _rule(
        [
            r"(?<!not )(?<!n't )expensive(?:ly)?",
            r"pricey",
            _price(r"high(?:er|est|ly)?"),
            rf"{_ABOVE}(?:an? )?(?:average of )?{_THIRTY}",
            rf"{_THIRTY} ?(?:\+|(?:or|and) (?:more|over|up|above|upwards?))",
        ],
        [r"high[- ]?(?:end|class)", r"upscale", r"up[- ]?market", r"(?:above|than)[- ]average pric\w+"],
    ),
}
_RATINGS = {
    "low": _rule(
        [*_stars("1|one"), _rating(r"low(?:er|est|ly)?|poor(?:ly)?|bad(?:ly)?|terribl[ey]")],
        [rf"{_NOT} (?:\w+ ){{0,4}}(?:rated|rating|recommended)", r"poor(?:ly)?"],
    ),
    "average": _rule(
        [*_stars("3|three"), _rating(rf"{_AVERAGE}|mediocre|moderate(?:ly)?|medium")],
        [rf"{_AVERAGE}(?! pric)", r"decent", _rating(r"fair(?:ly)?|good|well|ok(?:ay)?")],
    ),
    "high": _rule(
        [
            *_stars("5|five"),
            _rating(r"high(?:er|est|ly)?|excellent(?:ly)?|great|top|perfect|outstanding|best"),
        ],
        [r"highly", r"excellent", r"recommended", r"popular", _rating(r"good|well")],
    ),
}
_AREAS = {
    "riverside": _rule([r"river[- ]?(?:side|bank|front)?s?", r"water(?:front|side)"]),
    "city centre": _rule(
        [
            r"(?:city|town)(?:'s)?[- ]?cent(?:re|er)s?",
            r"cent(?:re|er) of (?:the |a |our )?(?:city|town|cambridge)",
        ],
        [r"city", r"cent(?:re|er|ral|rally)", r"downtown", r"town"],
    ),
}
_FAMILY_FRIENDLY = {
    "yes": Rule(_whole_words([_FAMILY]), apart_from=_whole_words(_NO_FAMILY)),
    "no": _rule(_NO_FAMILY, [r"adults?"]),
}

RULES = {
    "eatType": _EAT_TYPES,
    "food": _FOODS,
    "priceRange": _PRICES,
    "customer rating": _RATINGS,
    "area": _AREAS,
    "familyFriendly": _FAMILY_FRIENDLY,
}

SAME = {
    "priceRange": {
        "cheap": "low",
        "less than £20": "low",
        "£20-25": "moderate",
        "more than £30": "high",
    },
    "customer rating": {"1 out of 5": "low", "3 out of 5": "average", "5 out of 5": "high"},
    "area": {"city center": "city centre"},
}

PLACES = tuple(
    name.strip()
    for name in """
    Alimentum; All Bar One; Aromi; Avalon; Bibimbap House; Blue Spice; Browns Cambridge;
    Burger King; Café Adriatic; Café Brazil; Café Rouge; Café Sicilia; Clare Hall; Clowns; Cocum;
    Cotto; Crowne Plaza Hotel; Express by Holiday Inn; Fitzbillies; Giraffe; Green Man; Loch Fyne;
    Midsummer House; Rainbow Vegetarian Café; Raja Indian Cuisine; Ranch; Strada;
    Taste of Cambridge; The Bakers; The Cambridge Blue; The Cricketers; The Dumpling Tree;
    The Eagle; The Golden Curry; The Golden Palace; The Mill; The Olive Grove; The Phoenix;
    The Plough; The Portland Arms; The Punter; The Rice Boat; The Six Bells; The Sorrento;
    The Twenty Two; The Vaults; The Waterman; The Wrestlers; Travellers Rest Beefeater; Wildwood;
    Yippee Noodle Bar; Zizzi
    """.split(";")
)


def place(name: str) -> Rule:
    """A place by its full name; without its "The" it is only suggested."""
    full = re.escape(plain(name)) + "(?:'?s)?"
    return _rule([full], [full.removeprefix(r"the\ ")])
