"""From a table to a sentence: a plan is drawn, then a phrase for each slot."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import NamedTuple

from models.data.tables import key_mark
from models.restaurants import grammar
from models.restaurants.grammar import PLANS, SLOT_OF_KEY, Plan, kind_of

OPEN_CLASS = {key: key_mark(key) for key in ("name", "near")}  # words show only these marks
WEIGHTS = [plan.weight for plan in PLANS]
CHOICE = re.compile(r"\[([^][]*)\]")


class Token(NamedTuple):
    surface: str
    slot: str
    word: str  # lower-cased, delexicalised


def write_sentence(table: Mapping[str, str], rng: random.Random) -> list[Token]:
    """One way to say what the table says."""
    values = {SLOT_OF_KEY[key]: value for key, value in table.items()}
    (plan,) = rng.choices(PLANS, WEIGHTS)
    return with_articles(SentenceBuilder(values, plan, rng).sentence())


def with_articles(tokens: list[Token]) -> list[Token]:
    """The tokens with "an" for "a" before a vowel."""
    result = list(tokens)
    for i, following in enumerate(tokens[1:]):
        if tokens[i].word == "a" and following.surface[0].lower() in "aeiou":
            result[i] = tokens[i]._replace(surface="an", word="an")
    return result


class SentenceBuilder:
    """Writes one sentence; most methods write one part of it."""

    def __init__(self, values: Mapping[str, str], plan: Plan, rng: random.Random) -> None:
        self.values, self.rng = values, rng
        self.kinds = {slot: kind_of(slot, value) for slot, value in values.items()}
        self.front, before, after, self.told = (
            [slot for slot in place.split() if slot in values]
            for place in (plan.front, plan.before, plan.after, plan.told)
        )
        self.before = [slot for slot in before if self.kinds[slot] in grammar.BEFORE]
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
            return self.slot(self.front[0], grammar.FRONT) + self.say("punct", ",")
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
            tokens += self.slot(slot, grammar.BEFORE)
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
            phrase = self.slot(slot, grammar.LAST if last and may_be_clause else grammar.AFTER)
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
        least = 0 if link else 1  # slots that the first sentence needs
        kept = len(self.told)
        if kept > least and self.chance(0.45):
            kept = self.rng.randint(least, kept - 1)
        first, second = self.told[:kept], self.told[kept:]
        tokens = self.linked(link, len(first)) + self.predicates(first) if first else []
        if second:
            tokens += self.say("punct", ".") + self.one_of("venue", "it") + self.predicates(second)
        return tokens

    def linked(self, link: str, followers: int) -> list[Token]:
        """The link to so many predicates; "and" waits for the last of them."""
        comma, _, word = link.rpartition(" ")
        if word == "and" and followers > 1:
            return self.say("punct", ",")
        return self.say("punct", comma) + self.say("link", word)

    def predicates(self, slots: list[str]) -> list[Token]:
        """Serves ..., has ... and is ...."""
        tokens: list[Token] = []
        for i, slot in enumerate(slots):
            if i > 0:
                last = i == len(slots) - 1
                tokens += self.say("link", "and") if last else self.say("punct", ",")
            tokens += self.maybe(0.1, "modifier", "also") + self.slot(slot, grammar.TOLD)
        return tokens

    def name(self) -> list[Token]:
        return self.say("name", "{}")

    def slot(self, slot: str, place: grammar.Phrases) -> list[Token]:
        """One of the phrases for the slot's value at that place."""
        lead, _, phrase = self.rng.choice(place[self.kinds[slot]]).rpartition("~")
        role = "verb" if place is grammar.TOLD else "opener"
        return self.say(role, lead) + self.say(slot, phrase)

    def one_of(self, slot: str, role: str) -> list[Token]:
        return self.say(slot, self.rng.choice(grammar.CONNECTING[role]))

    def maybe(self, probability: float, slot: str, role: str) -> list[Token]:
        return self.one_of(slot, role) if self.chance(probability) else []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def say(self, slot: str, phrase: str) -> list[Token]:
        """The phrase with its choices made and its value filled in."""
        while "[" in phrase:
            phrase = CHOICE.sub(lambda m: self.rng.choice(m[1].split("|")), phrase)
        tokens = []
        for part in phrase.split():
            if part != "{}":
                tokens.append(Token(part, slot, part.lower()))
                continue
            for surface in self.values[slot].split():
                tokens.append(Token(surface, slot, OPEN_CLASS.get(slot, surface.lower())))
        return tokens
