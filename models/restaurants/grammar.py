"""What can be said about a restaurant, in which order, and how: `grammar.yaml`, read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Phrases = dict[str, tuple[str, ...]]  # by kind of value

FRAGMENT = re.compile("<([^>]+)>")
GRAMMAR: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("grammar.yaml").read_text(encoding="utf-8")
)


class Plan(NamedTuple):
    """Where each slot stands in a sentence of that shape."""

    weight: int
    shape: str
    front: str = ""
    before: str = ""
    after: str = ""
    told: str = ""


def _expanded(line: str) -> list[str]:
    """The line once for each line of the fragments that it names."""
    name = FRAGMENT.search(line)
    if name is None:
        return [line]
    pieces = GRAMMAR["fragments"][name[1]].splitlines()
    lines = [line[: name.start()] + piece + line[name.end() :] for piece in pieces]
    return [whole for part in lines for whole in _expanded(part)]


def _phrases(texts: dict[str, str]) -> Phrases:
    return {
        kind: tuple(phrase for line in text.splitlines() for phrase in _expanded(line))
        for kind, text in texts.items()
    }


VALUES: dict[str, list[str]] = GRAMMAR["values"]
SLOT_OF_KEY = {
    **{key: key for key in VALUES},
    **{"priceRange": "price", "customer rating": "rating", "familyFriendly": "family"},
}
SLOTS = (*SLOT_OF_KEY.values(), "verb", "link", "opener", "modifier", "venue", "punct")
PLANS = [Plan(**plan) for plan in GRAMMAR["plans"]]
CONNECTING: dict[str, list[str]] = GRAMMAR["connecting"]
BEFORE, FRONT, AFTER, CLAUSES, TOLD = PLACES = [
    _phrases(GRAMMAR[place]) for place in ("before", "front", "after", "clauses", "told")
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
