"""What can be said about a restaurant, in which order, and how: `grammar.yaml`, read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from models.data.phrases import lines_of, read_yaml

Phrases = dict[str, tuple[str, ...]]  # by kind of value

GRAMMAR: dict[str, Any] = read_yaml(Path(__file__).with_name("grammar.yaml"))


class Plan(NamedTuple):
    """Where each slot stands in a sentence of that shape."""

    weight: int
    shape: str
    front: str = ""
    before: str = ""
    after: str = ""
    told: str = ""


VALUES: dict[str, list[str]] = GRAMMAR["values"]
SLOT_OF_KEY = {
    **{key: key for key in VALUES},
    **{"priceRange": "price", "customer rating": "rating", "familyFriendly": "family"},
}
SLOTS = (*SLOT_OF_KEY.values(), "verb", "link", "opener", "modifier", "venue", "punct")
PLANS = [Plan(**plan) for plan in GRAMMAR["plans"]]
CONNECTING: dict[str, list[str]] = GRAMMAR["connecting"]
BEFORE, FRONT, AFTER, CLAUSES, TOLD = PLACES = [
    {kind: tuple(lines_of(text, GRAMMAR["fragments"])) for kind, text in GRAMMAR[place].items()}
    for place in ("before", "front", "after", "clauses", "told")
]
LAST: Phrases = {kind: AFTER[kind] + CLAUSES.get(kind, ()) for kind in AFTER}


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
