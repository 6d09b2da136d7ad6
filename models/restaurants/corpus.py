"""A built-in corpus with known templates: sentences about restaurants, written by a grammar.

Every sentence says what its table says, and the true slot of each word is known. In `words`, names
and places nearby are delexicalised as in the E2E corpus, one key mark for each token; other values
stay words. Words that say nothing of the table have slots of their own: verb, link, opener,
modifier, venue ("it", "place") and punct.

A table belongs to one split, by a checksum of its delexicalised form. So no two splits share a
combination of values, nor a delexicalised sentence.
"""

from __future__ import annotations

import random
import zlib

from models.data.corpus import Corpus, Example
from models.data.tables import Table, format_table
from models.restaurants.grammar import OPEN_CLASS, VALUES, Token, write_sentence

SHARES = ("train", "train", "train", "train", "train", "dev", "test")  # of all tables
NUM_PAIRS = (3, 3, 4, 4, 5)  # one is drawn; the name is always among them
MIN_WORDS, MAX_WORDS = 8, 24


def synthetic_corpus(
    num_train: int = 6000, num_dev: int = 500, num_test: int = 500, seed: int = 0
) -> Corpus:
    """The same seed gives the same sentences, and a larger corpus begins with the smaller one."""
    sizes = {"train": num_train, "dev": num_dev, "test": num_test}
    splits = {
        split: tuple(draw_example(split, f"{seed}/{split}/{number}") for number in range(size))
        for split, size in sizes.items()
    }
    return Corpus("synthetic", splits)


def draw_example(split: str, seed: str) -> Example:
    """The first draw that belongs to the split and is neither too short nor too long.

    A table has the name and a random choice of the other keys, in their usual order.
    """
    rng, others = random.Random(seed), [key for key in VALUES if key != "name"]
    while True:
        keys = {"name", *rng.sample(others, rng.choice(NUM_PAIRS) - 1)}
        table = tuple((key, rng.choice(VALUES[key])) for key in VALUES if key in keys)
        if split_of(table) == split:
            tokens = write_sentence(dict(table), rng)
            if MIN_WORDS <= len(tokens) <= MAX_WORDS:
                break
    words, slots = tuple(token.word for token in tokens), tuple(token.slot for token in tokens)
    return Example(words, surface_text(tokens), table, format_table(table), slots)


def split_of(table: Table) -> str:
    """The split that a table belongs to, whatever the seed."""
    delexicalised = tuple((key, OPEN_CLASS.get(key, value)) for key, value in table)
    return SHARES[zlib.crc32(format_table(delexicalised).encode()) % len(SHARES)]


def surface_text(tokens: list[Token]) -> str:
    """The text as one writes it: capitals at starts, and no space before punctuation."""
    text, starts = "", True
    for token in tokens:
        shown = token.surface[0].upper() + token.surface[1:] if starts else token.surface
        text += shown if token.slot == "punct" or not text else f" {shown}"
        starts = token.surface == "."
    return text
