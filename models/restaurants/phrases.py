"""How each kind of value is said, by place in the sentence.

In a phrase, `{}` is the value and `[a|b|]` a free choice, here of a, b or nothing. What stands to
the left of `~` leads to the slot but is no part of it: in "serves ~ {} food" it is a verb.
"""

from __future__ import annotations

Phrases = dict[str, tuple[str, ...]]  # by kind of value

CONNECTING: Phrases = {  # what holds a sentence together
    "opener": (
        *("apparently", "as it happens", "by the way", "for a good meal", "for a night out"),
        *("if you are in the city", "when in town", "with friends in town", "in the evening"),
        *("customers say that", "guests say that", "locals say that", "for great food"),
    ),
    "adjective": ("nice", "lovely", "great", "popular", "small", "modern", "really good", "busy"),
    "comment": (
        *("with friendly staff", "with a nice atmosphere", "with great service", "on the corner"),
        *("in the neighbourhood", "with a small menu", "for a quick meal"),
    ),
    "adverb": ("really", "certainly", "simply", "just", "apparently", "in fact"),
    "also": ("also", "also", "in fact", "apparently", "really"),
    "place": ("place", "place", "venue", "spot", "establishment", "eatery"),
    "it": ("it", "it", "it", "it", "this place", "the venue", "the place"),
    "there is": ("there is", "there is", "you can find", "you will find", "we found"),
    "try": ("try", "visit", "go to", "head to", "check out", "come to", "have a look at"),
    "called": ("called", "called", "named", "known as"),
}

FAMILY_CUES: Phrases = {  # a text with a cue of "no" says no; else one with a cue of "yes" says yes
    "no": (
        *("adults only", "not family", "not child", "not kid", "not suitable", "not welcome"),
        *("no place for", "no menu for"),
    ),
    "yes": ("family", "families", "child", "kid"),
}

FOOD = "{} [food|dishes|cuisine|meals|cooking]"
TASTY_FOOD = f"[||good|fresh|traditional|typical|great] {FOOD}"
MARKS = "{} [ratings|reviews|marks|scores]"
GUESTS = "[customers|guests|visitors|locals]"
FRIENDLY = "[family|child|kid] friendly"
CHILDREN = "[families|children|kids]"
IS = "[is|is located|is situated|sits|lies|can be found|is]"
EACH = "[|a head|per person]"

CLOSE_TO = (
    "[|||right] near {}",
    "[|||very|really] close to {}",
    "[|||right|just] next to {}",
    "[|||right|just] [by|beside|opposite] {}",
    "not far from {}",
    "[around the corner|across|a short walk] from {}",
)
INSIDE = (
    "in the {}",
    "in the {}",
    "[right|out] in the {}",
    "in the {} area",
    "near the {}",
    "in the [heart|middle|centre] of the {}",
    "on the edge of the {}",
)
ALONG = (
    "on the {}",
    "in the {} area",
    "[||right|just] [by|near|beside] the {}",
    "along the {}",
    "[right|out] on the {}",
    "down by the {}",
)

BEFORE: Phrases = {  # the noun, as an adjective; kinds that are missing follow it
    "food": ("{}",),
    "fast food": ("{}",),
    "price": ("{} priced", "{} cost"),
    "rating": ("{} rated", "{} quality", "{} scoring"),
    "area": ("{}",),
    "waterside": ("{}",),
    "family": (FRIENDLY,),
    "not family": ("adults only",),
}

FRONT: Phrases = {  # of the sentence, up to a comma
    "food": (
        f"if you [want|like|fancy|love] ~ {TASTY_FOOD}",
        f"for [|some] {TASTY_FOOD}",
        f"for a taste of {FOOD}",
        f"when you are in the mood for ~ {FOOD}",
    ),
    "fast food": (
        "if you [want|like|fancy|love] ~ {}",
        "for [|some] {}",
        "when you are in the mood for ~ {}",
    ),
    "price": (
        "at {} prices",
        "for a {} price",
        "if you [expect|like|want] ~ {} prices",
        "in the {} price range",
        "with a {} price range",
    ),
    "pounds": (f"for {{}} {EACH}", "if you want to [pay|spend] ~ {}", "with {} to spend"),
    "rating": (
        "with a {} [|customer] rating",
        f"with {MARKS} [|from {GUESTS}]",
        f"rated {{}} by {GUESTS}",
    ),
    "points": (
        f"rated {{}} [|by {GUESTS}]",
        "with a [|customer] rating of {}",
        f"with {{}} from {GUESTS}",
    ),
    "area": (*INSIDE, "if you are ~ in the {}"),
    "waterside": (*ALONG, "if you are ~ on the {}"),
    "near": (*CLOSE_TO, "if you are ~ near {}"),
    "family": (
        "for [families|the whole family]",
        "if you have ~ [kids|children]",
        "with [kids|children]",
        f"for a {FRIENDLY} [meal|evening]",
    ),
    "not family": ("for adults only", "for an adults only [meal|evening|night out]"),
}

AFTER: Phrases = {  # the noun
    "food": (
        f"[serving|offering] {TASTY_FOOD}",
        f"with {FOOD} [|on the menu]",
        "with a {} menu",
        f"for {TASTY_FOOD}",
    ),
    "fast food": ("[serving|offering] {}", "with {} on the menu", "with a {} menu"),
    "price": ("[with|at] {} prices", "in the {} price range", "for a {} price"),
    "pounds": (
        f"for {{}} {EACH}",
        "with [meals|dishes|food] for {}",
        "in the {} [|price] range",
        "at {} [a head|per person]",
    ),
    "rating": (*FRONT["rating"], "of {} quality"),
    "points": FRONT["points"],
    "area": (*INSIDE, "[located|situated] in the {}"),
    "waterside": (*ALONG, "[located|situated] on the {}"),
    "near": (*CLOSE_TO, "[located|situated] [near|by] {}", "in the [area|neighbourhood] of {}"),
    "family": (
        "for the whole family",
        f"with a {FRIENDLY} [atmosphere|menu]",
        f"[good|suitable] for {CHILDREN}",
        "with a menu for [kids|children]",
    ),
    "not family": (
        "for adults only",
        f"not suitable for {CHILDREN}",
        "with no menu for [kids|children]",
    ),
}

CLAUSES: Phrases = {  # after the noun too, where nothing else follows
    "food": (f"that [serves|offers|does] {FOOD}", f"where you can [eat|get|find] {FOOD}"),
    "fast food": ("that [serves|offers|does] {}", "where you can [eat|get|find] {}"),
    "price": ("whose prices are {}",),
    "pounds": ("where a meal is {}",),
    "rating": ("whose [|customer] rating is {}",),
    "points": ("whose rating is {}", f"that gets {{}} [in reviews|from {GUESTS}]"),
    "family": (
        f"that is {FRIENDLY}",
        f"that welcomes {CHILDREN}",
        f"where {CHILDREN} are welcome",
    ),
    "not family": (
        f"that is not {FRIENDLY}",
        f"that is no place for {CHILDREN}",
        f"where {CHILDREN} are not welcome",
    ),
}

TOLD: Phrases = {  # a predicate of its own
    "food": (
        f"[serves|offers|does|has] ~ {TASTY_FOOD}",
        f"is [known|popular|famous] for ~ its {FOOD}",
        "has ~ a {} menu",
        f"specialises in ~ {TASTY_FOOD}",
    ),
    "fast food": ("[serves|offers|does|has] ~ {}", "has ~ {} on the menu", "specialises in ~ {}"),
    "price": (
        "has ~ {} prices",
        "is ~ in the {} price range",
        "has ~ a {} price range",
        "is ~ {} in price",
        "charges ~ {} prices",
        "offers ~ [meals|food] at {} prices",
    ),
    "pounds": (
        f"costs ~ {{}} {EACH}",
        "[charges|asks for] ~ {} [|a head|for a meal]",
        "offers ~ [meals|food] for {}",
        "is ~ in the {} [|price] range",
    ),
    "rating": (
        "has ~ a {} [|customer] rating",
        f"[has|gets|receives] ~ {MARKS} [|from {GUESTS}]",
        f"is rated ~ {{}} by {GUESTS}",
        "is ~ of {} quality",
    ),
    "points": (
        f"is rated ~ {{}} [|by {GUESTS}]",
        "has ~ a [|customer] rating of {}",
        f"[gets|scores|receives] ~ {{}} [in reviews|from {GUESTS}]",
    ),
    "area": tuple(f"{IS} ~ {phrase}" for phrase in INSIDE),
    "waterside": tuple(f"{IS} ~ {phrase}" for phrase in ALONG),
    "near": tuple(f"{IS} ~ {phrase}" for phrase in CLOSE_TO),
    "family": (
        f"is ~ {FRIENDLY}",
        f"welcomes ~ {CHILDREN}",
        f"is ~ a [good|great] place for {CHILDREN}",
        f"has ~ a {FRIENDLY} [atmosphere|menu]",
        f"is ~ [good|suitable] for {CHILDREN}",
        "has ~ a menu for [kids|children]",
    ),
    "not family": (
        "is ~ adults only",
        f"is ~ not {FRIENDLY}",
        f"is ~ no place for {CHILDREN}",
        f"is ~ not suitable for {CHILDREN}",
        "has ~ no menu for [kids|children]",
    ),
}

LAST: Phrases = {kind: AFTER[kind] + CLAUSES.get(kind, ()) for kind in AFTER}
