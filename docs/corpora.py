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
    source = "invented sentences (STRUCTDIST_DATA is not set)"
    return Corpus(invented(1500, share=0.5), invented(300, share=1.0), source)


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


FIRST = ("Ada", "Bo", "Chen", "Dina", "Emil", "Fay", "Gita", "Hugo", "Ines", "Jan", "Kofi")
LAST = ("Adler", "Berg", "Cruz", "Diaz", "Ekman", "Frost", "Gupta", "Hale", "Ito", "Jung", "Khan")
PLACES = ("Oslo", "New York", "Lima", "Cape Town", "Bern", "Porto", "San Juan", "Kyoto", "Hanoi")
WORKS = ("The Long Night", "Blue Mirror", "Falling Up", "A Quiet Year", "Go", "Rain At Last")
NAMES = {
    "PERSON": [
        n for first, last in zip(FIRST, LAST, strict=True) for n in (first, f"{first} {last}")
    ],
    "LOCATION": PLACES,
    "CREATIVE-WORK": WORKS,
}
PATTERNS = (
    "just met PERSON in LOCATION lol",
    "PERSON is playing CREATIVE-WORK tonight",
    "anyone been to LOCATION lately ?",
    "CREATIVE-WORK by PERSON is so good",
    "omw to LOCATION with PERSON and PERSON",
    "i can not sleep again",
    "watching CREATIVE-WORK again , see you in LOCATION",
)


def invented(size: int, share: float) -> Tagged:
    """Sentences with this share of all names; half of them in lower case, as people write."""
    return [invented_sentence(share, random.random() < 0.5) for _ in range(size)]


def invented_sentence(share: float, lower: bool) -> tuple[list[str], list[str]]:
    words, tags = [], []
    for token in random.choice(PATTERNS).split():
        if token in NAMES:
            some = NAMES[token][: round(share * len(NAMES[token]))]
            name, label = random.choice(some).split(), token.lower()
            words += name
            tags += [f"B-{label}", *[f"I-{label}"] * (len(name) - 1)]
        else:
            words.append(token)
            tags.append("O")
    return ([word.lower() for word in words] if lower else words), tags
