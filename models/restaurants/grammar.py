"""What can be said about a restaurant, and in which order.

`VALUES` holds what a table may contain, `SLOTS` the slots of words, `PLANS` the templates: which
slot stands where in a sentence. The words themselves are in `restaurant_phrases`.
"""

from __future__ import annotations

from typing import NamedTuple

VALUES: dict[str, tuple[str, ...]] = {
    "name": (
        *("Aurora", "Bramble", "Cascade", "Juniper", "Marlowe", "Pomegranate", "Tamarind"),
        *("Calypso", "Driftwood", "Hollyhock", "Mistral", "Nutmeg", "Quince", "Rosemary", "Zephyr"),
        *("The Anchor", "The Bellows", "Blue Heron", "Green Lantern", "Silver Birch", "Old Mill"),
        *("Red Maple", "Stone Bridge", "Painted Door", "Corner Table", "Brave Sparrow"),
        *("The Copper Kettle", "The Lazy Fox", "Two White Swans"),
    ),
    "eatType": ("pub", "restaurant", "coffee shop", "bar", "bistro"),
    "food": ("Italian", "Chinese", "French", "English", "Indian", "Japanese", "fast food"),
    "priceRange": ("low", "average", "high", "under £20", "£20-25", "over £30"),
    "customer rating": ("low", "average", "high", "3 out of 5", "5 out of 5"),
    "area": ("city centre", "old town", "riverside", "harbour"),
    "familyFriendly": ("yes", "no"),
    "near": (
        *("Saffron", "Belvedere", "Wisteria", "Solace", "Cavendish", "Foundry"),
        *("Abbey Park", "Crown Station", "Kings Theatre", "Grand Hotel", "Market Hall"),
        *("Victoria Concert Hall", "Botanic Garden Hotel", "The Stag Inn"),
    ),
}

SLOT_OF_KEY = {
    **{key: key for key in VALUES},
    **{"priceRange": "price", "customer rating": "rating", "familyFriendly": "family"},
}
SLOTS = (*SLOT_OF_KEY.values(), "verb", "link", "opener", "modifier", "venue", "punct")


def kind_of(slot: str, value: str) -> str:
    """The slot, or for values that need phrases of their own the kind of value."""
    if slot == "family":
        return "family" if value == "yes" else "not family"
    if value in ("riverside", "harbour"):
        return "waterside"
    if "£" in value:
        return "pounds"
    if "out of" in value:
        return "points"
    return value if value == "fast food" else slot


class Plan(NamedTuple):
    """Where each slot stands. Slots without a value are left out.

    The shape says how the places make a sentence about N, here with every place filled:
    is          FRONT, N is a BEFORE pub AFTER and TOLD.
    apposition  FRONT, N, a BEFORE pub AFTER, TOLD.
    there       FRONT, there is a BEFORE pub called N AFTER, which TOLD.
    try         FRONT, try N, a BEFORE pub AFTER that TOLD.
    subject     a BEFORE pub called N AFTER TOLD.
    """

    weight: int
    shape: str
    front: str = ""
    before: str = ""
    after: str = ""
    told: str = ""


PLANS = (
    Plan(14, "is", before="price food", after="area near", told="rating family"),
    Plan(12, "is", before="family food", after="near price area", told="rating"),
    Plan(9, "is", before="food", after="rating area near", told="family price"),
    Plan(8, "there", front="near", before="rating food", after="area price", told="family"),
    Plan(8, "is", before="rating", after="food price", told="near area family"),
    Plan(7, "apposition", before="family", after="area", told="food near rating price"),
    Plan(6, "try", front="food", before="family", after="area near price", told="rating"),
    Plan(6, "there", front="area", before="price food", after="rating near", told="family"),
    Plan(5, "is", front="area", before="family price", after="food near", told="rating"),
    Plan(5, "apposition", before="rating food", after="near", told="price family area"),
    Plan(4, "subject", before="price", after="food rating", told="family area near"),
    Plan(4, "try", front="price", before="rating food", after="near family", told="area"),
    Plan(3, "subject", before="food", after="area", told="rating near price family"),
    Plan(3, "is", front="rating", before="area food", after="family price", told="near"),
    Plan(3, "try", front="family", before="food", after="near rating area", told="price"),
    Plan(2, "there", before="area", after="near family food", told="price rating"),
    Plan(1, "apposition", front="near", before="area family", after="rating", told="price food"),
)
