"""How the values of an E2E table are said in English.

Values that E2E uses as one are one: a price of "cheap" and "less than £20", a customer rating of
"low" and "1 out of 5", and so on up the scale. "Restaurant" is what people call any place, so it
is never an error. The patterns were written while reading what the rules made of the development
and the test references.
"""

from __future__ import annotations

import re

from models.metrics.slot_rules import (
    ABOVE,
    AVERAGE,
    BELOW,
    FAMILY,
    NO_FAMILY,
    NOT,
    THIRTY,
    TWENTY,
    TWENTY_FIVE,
    of_price,
    of_rating,
    rule,
    stars,
)

PLACES = re.split(
    r"\s*;\s*",
    """Alimentum; All Bar One; Aromi; Avalon; Bibimbap House; Blue Spice; Browns Cambridge;
    Burger King; Café Adriatic; Café Brazil; Café Rouge; Café Sicilia; Clare Hall; Clowns; Cocum;
    Cotto; Crowne Plaza Hotel; Express by Holiday Inn; Fitzbillies; Giraffe; Green Man; Loch Fyne;
    Midsummer House; Rainbow Vegetarian Café; Raja Indian Cuisine; Ranch; Strada;
    Taste of Cambridge; The Bakers; The Cambridge Blue; The Cricketers; The Dumpling Tree;
    The Eagle; The Golden Curry; The Golden Palace; The Mill; The Olive Grove; The Phoenix;
    The Plough; The Portland Arms; The Punter; The Rice Boat; The Six Bells; The Sorrento;
    The Twenty Two; The Vaults; The Waterman; The Wrestlers; Travellers Rest Beefeater; Wildwood;
    Yippee Noodle Bar; Zizzi""",
)

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

_EAT_TYPES = {
    "pub": rule([r"pubs?", r"public house"], [r"bar", r"tavern", r"inn"]),
    "coffee shop": rule([r"coffee[- ]?(?:shop|house|bar|place)s?"], [r"coffee", r"cafes?"]),
    "restaurant": rule([], [r"restaurants?", r"eatery", r"diner", r"bistro", r"place"]),
}
_FOODS = {
    "chinese": rule([r"chinese"], [r"asian", r"oriental"]),
    "english": rule([r"english"], [r"british", r"fish and chips"]),
    "fast food": rule([r"fast[- ]?foods?"], [r"burgers?", r"junk food"]),
    "french": rule([r"french"], [r"france"]),
    "indian": rule([r"indian"], [r"curr(?:y|ies)", r"india"]),
    "italian": rule([r"italian"], [r"pasta", r"pizzas?", r"italy"]),
    "japanese": rule([r"japanese"], [r"asian", r"sushi", r"japan"]),
}
_PRICES = {
    "low": rule(
        [
            r"(?<!not )cheap(?:er|ly|est)?",
            r"inexpensive(?:ly)?",
            of_price(r"low(?:er|est)?|cheap|small"),
            rf"{BELOW}(?:an? )?(?:average of )?{TWENTY}",
        ],
        [
            r"affordabl[ey]",
            r"budget",
            r"reasonabl[ey]",
            r"economical",
            of_price(r"good|great|decent"),
        ],
    ),
    "moderate": rule(
        [
            r"mid(?:dle)?[- ]?(?:pric\w+|range|cost)",
            of_price(rf"moderate(?:ly)?|{AVERAGE}|mid|mid(?:dle)?[- ]range|medium"),
            rf"{TWENTY} ?(?:-|to|and|or|/|~) ?{TWENTY_FIVE}",
        ],
        [
            r"moderate(?:ly)?",
            r"reasonabl[ey]",
            r"affordabl[ey]",
            of_price(r"good|decent|fair(?:ly)?"),
        ],
    ),
    "high": rule(
        [
            r"(?<!not )(?<!n't )expensive(?:ly)?",
            r"pricey",
            of_price(r"high(?:er|est|ly)?"),
            rf"{ABOVE}(?:an? )?(?:average of )?{THIRTY}",
            rf"{THIRTY} ?(?:\+|(?:or|and) (?:more|over|up|above|upwards?))",
        ],
        [
            r"high[- ]?(?:end|class)",
            r"upscale",
            r"up[- ]?market",
            r"(?:above|than)[- ]average pric\w+",
        ],
    ),
}
_RATINGS = {
    "low": rule(
        [*stars("1|one"), of_rating(r"low(?:er|est|ly)?|poor(?:ly)?|bad(?:ly)?|terribl[ey]")],
        [rf"{NOT} (?:\w+ ){{0,4}}(?:rated|rating|recommended)", r"poor(?:ly)?"],
    ),
    "average": rule(
        [*stars("3|three"), of_rating(rf"{AVERAGE}|mediocre|moderate(?:ly)?|medium")],
        [rf"{AVERAGE}(?! pric)", r"decent", of_rating(r"fair(?:ly)?|good|well|ok(?:ay)?")],
    ),
    "high": rule(
        [
            *stars("5|five"),
            of_rating(
                r"(?<!not )high(?:er|est|ly)?|excellent(?:ly)?|great|top|perfect|outstanding|best"
            ),
        ],
        [r"highly", r"excellent", r"recommended", r"popular", of_rating(r"good|well")],
    ),
}
_AREAS = {
    "riverside": rule([r"river[- ]?(?:side|bank|front)?s?", r"water(?:front|side)"]),
    "city centre": rule(
        [
            r"(?:city|town)(?:'s)?[- ]?cent(?:re|er)s?",
            r"cent(?:re|er) of (?:the |a |our )?(?:city|town|cambridge)",
        ],
        [r"city", r"cent(?:re|er|ral|rally)", r"downtown", r"town"],
        apart_from=[
            r"(?:north|south|east|west|outside|outskirts)(?: of)?(?: the)? city cent(?:re|er)"
        ],
    ),
}
_FAMILY_FRIENDLY = {
    "yes": rule([FAMILY], apart_from=NO_FAMILY),
    "no": rule(NO_FAMILY, [r"adults?"]),
}

RULES = {
    "eatType": _EAT_TYPES,
    "food": _FOODS,
    "priceRange": _PRICES,
    "customer rating": _RATINGS,
    "area": _AREAS,
    "familyFriendly": _FAMILY_FRIENDLY,
}
