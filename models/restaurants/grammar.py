"""The grammar of the built-in corpus, `grammar.yaml`, and how a table becomes a sentence by it.

A plan is drawn, then a phrase for each slot.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from models.data.phrases import lines_of, read_yaml
from models.data.tables import key_mark

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
KIND_OF_VALUE = {value: kind for kind, own in GRAMMAR["kinds"].items() for value in own}
SLOTS = (*SLOT_OF_KEY.values(), "verb", "link", "opener", "modifier", "venue", "punct")
PLANS = [Plan(**plan) for plan in GRAMMAR["plans"]]
CONNECTING: dict[str, list[str]] = GRAMMAR["connecting"]
BEFORE, FRONT, AFTER, CLAUSES, TOLD = PLACES = [
    {kind: tuple(lines_of(text, GRAMMAR["fragments"])) for kind, text in GRAMMAR[place].items()}
    for place in ("before", "front", "after", "clauses", "told")
]
LAST: Phrases = {kind: AFTER[kind] + CLAUSES.get(kind, ()) for kind in AFTER}
OPEN_CLASS = {key: key_mark(key) for key in ("name", "near")}  # words show only these marks
CHOICE = re.compile(r"\[([^][]*)\]")


class Token(NamedTuple):
    surface: str
    slot: str
    word: str  # lower-cased, delexicalised


def write_sentence(table: Mapping[str, str], rng: random.Random) -> list[Token]:
    """One way to say what the table says, with "an" for "a" before a vowel."""
    values = {SLOT_OF_KEY[key]: value for key, value in table.items()}
    (plan,) = rng.choices(PLANS, [plan.weight for plan in PLANS])
    tokens = SentenceBuilder(values, plan, rng).sentence()
    for i, (token, following) in enumerate(itertools.pairwise(tokens)):
        if token.word == "a" and following.surface[0].lower() in "aeiou":
            tokens[i] = token._replace(surface="an", word="an")
    return tokens


class SentenceBuilder:
    """Writes one sentence; most methods write one part of it."""

    def __init__(self, values: Mapping[str, str], plan: Plan, rng: random.Random) -> None:
        self.values, self.rng = values, rng
        self.kinds = {slot: KIND_OF_VALUE.get(value, slot) for slot, value in values.items()}
        self.front, before, after, self.told = (
            [slot for slot in place.split() if slot in values]
            for place in (plan.front, plan.before, plan.after, plan.told)
        )
        self.before = [slot for slot in before if self.kinds[slot] in BEFORE]
        self.after = [*(slot for slot in before if slot not in self.before), *after]
        self.shape = self.possible(plan.shape)

    def possible(self, shape: str) -> str:
        """The shape, or a like one where the table is too small for it."""
        if not self.told:
            return {"apposition": "is", "subject": "there"}.get(shape, shape)
        described = self.before or self.after or "eatType" in self.values
        return shape if described or shape not in ("is", "apposition") else "plain"

    def sentence(self) -> list[Token]:
        tokens, comma = self.opening(), self.say("punct", ",")
        if self.shape == "is":
            verb = self.say("verb", "is") + self.maybe(0.12, "modifier", "adverb")
            tokens += self.name() + verb + self.noun() + self.ending("and")
        elif self.shape == "apposition":
            tokens += self.name() + comma + self.noun() + comma + self.ending()
        elif self.shape == "there":
            tokens += self.one_of("verb", "there is") + self.noun(named=True)
            tokens += self.ending(", which")
        elif self.shape == "try":
            tokens += self.one_of("verb", "try") + self.name() + comma + self.noun()
            tokens += self.ending("that")
        elif self.shape == "subject":
            tokens += self.noun(named=True) + self.ending()
        else:
            tokens += self.name() + self.ending()
        return tokens + self.say("punct", ".")

    def opening(self) -> list[Token]:
        """The slot in front, or now and then an opener."""
        if self.front:
            return self.slot(self.front[0], FRONT) + self.say("punct", ",")
        if self.shape == "subject" or not self.chance(0.12):
            return []
        opener = self.one_of("opener", "opener")
        return opener if opener[-1].word == "that" else opener + self.say("punct", ",")

    def noun(self, named: bool = False) -> list[Token]:
        """A low priced, family friendly Italian pub called N near M."""
        tokens = self.say("link", "a") + self.maybe(0.15, "modifier", "adjective")
        for i, slot in enumerate(self.before):
            if i > 0 and slot != "food" and self.chance(0.6):
                tokens += self.say("punct", ",")
            tokens += self.slot(slot, BEFORE)
        has_type = "eatType" in self.values
        tokens += self.say("eatType", "{}") if has_type else self.one_of("venue", "place")
        if named:
            tokens += self.one_of("link", "called") + self.name()
        return tokens + self.details()

    def details(self) -> list[Token]:
        """What follows the noun. After one phrase with "with", "and" stands for the next "with"."""
        tokens = self.maybe(0.12, "modifier", "comment")
        with_before = bool(tokens) and tokens[0].word == "with"
        may_be_clause = not self.told or self.shape in ("apposition", "there", "subject")
        for i, slot in enumerate(self.after):
            last = i == len(self.after) - 1
            phrase = self.slot(slot, LAST if last and may_be_clause else AFTER)
            starts_with = phrase[0].word == "with"
            if with_before and starts_with:
                phrase[:1] = self.say("link", "and")
            with_before = starts_with
            tokens += phrase
        return tokens

    def ending(self, link: str = "") -> list[Token]:
        """What is told, in the same sentence after the link, or in part in one of its own."""
        if not self.told:
            return []
        least, kept = 0 if link else 1, len(self.told)  # slots of the first sentence
        if kept > least and self.chance(0.45):
            kept = self.rng.randint(least, kept - 1)
        first, second = self.told[:kept], self.told[kept:]
        if link == "and" and len(first) > 1:
            link = ","  # "and" waits for the last of them
        tokens = self.say("link", link) + self.predicates(first) if first else []
        if second:
            tokens += self.say("punct", ".") + self.one_of("venue", "it") + self.predicates(second)
        return tokens

    def predicates(self, slots: list[str]) -> list[Token]:
        """Serves ..., has ... and is ...."""
        tokens: list[Token] = []
        for i, slot in enumerate(slots):
            if i > 0:
                tokens += self.say("link", "and" if slot == slots[-1] else ",")
            tokens += self.maybe(0.1, "modifier", "also") + self.slot(slot, TOLD)
        return tokens

    def name(self) -> list[Token]:
        return self.say("name", "{}")

    def slot(self, slot: str, place: Phrases) -> list[Token]:
        """One of the phrases for the slot's value at that place."""
        lead, _, phrase = self.rng.choice(place[self.kinds[slot]]).rpartition("~")
        role = "verb" if place is TOLD else "opener"
        return self.say(role, lead) + self.say(slot, phrase)

    def one_of(self, slot: str, role: str) -> list[Token]:
        return self.say(slot, self.rng.choice(CONNECTING[role]))

    def maybe(self, probability: float, slot: str, role: str) -> list[Token]:
        return self.one_of(slot, role) if self.chance(probability) else []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def say(self, slot: str, phrase: str) -> list[Token]:
        """The phrase with its choices made and its value filled in; signs have their own slot."""
        while "[" in phrase:
            phrase = CHOICE.sub(lambda m: self.rng.choice(m[1].split("|")), phrase)
        tokens = []
        for part in phrase.split():
            if part == "{}":
                value = self.values[slot].split()
                tokens += [Token(own, slot, OPEN_CLASS.get(slot, own.lower())) for own in value]
            else:
                tokens.append(Token(part, "punct" if part in ",." else slot, part.lower()))
        return tokens
