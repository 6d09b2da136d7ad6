"""Sentences for the tutorials: real ones where there are some, invented ones elsewhere."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path
from typing import NamedTuple

Tagged = list[tuple[list[str], list[str]]]  # of each sentence its words and its BIO tags


class Corpus(NamedTuple):
    train: Tagged
    dev: Tagged
    source: str


def wnut17() -> Corpus:
    """WNUT-17 from the folder that STRUCTDIST_DATA names; without it, invented sentences."""
    folder = Path(os.environ.get("STRUCTDIST_DATA", "")) / "wnut17"
    if folder.is_dir():
        return Corpus(read(folder / "train.conll.gz"), read(folder / "dev.conll.gz"), "WNUT-17")
    random.seed(0)
    return Corpus(invented(1500), invented(300), "invented sentences (STRUCTDIST_DATA is not set)")


def read(path: Path) -> Tagged:
    """Lines `word<tab>tag`, blank ones between sentences."""
    blocks: Tagged = [([], [])]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                word, tag = line.rstrip("\n").split("\t")
                blocks[-1][0].append(word)
                blocks[-1][1].append(tag)
            elif blocks[-1][0]:
                blocks.append(([], []))
    return [block for block in blocks if block[0]]


FIRST = ("Ada", "Bo", "Chen", "Dina", "Emil", "Fay", "Gita", "Hugo", "Ines", "Jan", "Kofi", "Lena")
LAST = ("Adler", "Berg", "Cruz", "Diaz", "Ekman", "Frost", "Gupta", "Hale", "Ito", "Jung", "Khan")
PLACES = ("Oslo", "New York", "Lima", "Cape Town", "Bern", "Porto", "San Juan", "Kyoto", "Hanoi")
WORKS = ("The Long Night", "Blue Mirror", "Falling Up", "A Quiet Year", "Second Sun")
PATTERNS = (
    "just met PERSON in LOCATION lol",
    "PERSON is playing CREATIVE-WORK tonight",
    "anyone been to LOCATION lately ?",
    "CREATIVE-WORK by PERSON is so good",
    "omw to LOCATION with PERSON and PERSON",
    "i can not sleep again",
    "watching CREATIVE-WORK again , see you in LOCATION",
)


def invented(size: int) -> Tagged:
    return [invented_sentence() for _ in range(size)]


def invented_sentence() -> tuple[list[str], list[str]]:
    words, tags = [], []
    for token in random.choice(PATTERNS).split():
        name = {
            "PERSON": lambda: random.choice(FIRST) + random.choice(["", " " + random.choice(LAST)]),
            "LOCATION": lambda: random.choice(PLACES),
            "CREATIVE-WORK": lambda: random.choice(WORKS),
        }.get(token)
        found = name().split() if name else [token]
        words += found
        inside = [f"I-{token.lower()}"] * (len(found) - 1)
        tags += [f"B-{token.lower()}", *inside] if name else ["O"]
    return words, tags
