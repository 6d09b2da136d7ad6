"""A user's own text: one sentence a line, tokenised or not."""

from __future__ import annotations

from pathlib import Path

from models.data.corpus import Corpus, Example, smallest_min_count
from models.data.tokens import tokenise
from models.errors import DataError
from models.files import read_text

LEAST = 3  # sentences: one for each split
HELD_OUT = {8: "dev", 9: "test"}  # of every ten sentences


def text_corpus(path: Path, max_words: int = 60) -> Corpus:
    """Of every ten sentences, the ninth is for the dev split and the tenth for the test split.

    Of fewer than ten, the last two are. Blank lines are passed over, and what a sentence has beyond
    `max_words` words is cut off. Rare words are unknown where there are very many words.
    """
    lines = [" ".join(line.split()) for line in read_text(path).split("\n")]
    examples = [
        Example(tuple(tokenise(line)[:max_words]), line, group=str(number))
        for number, line in enumerate(lines, 1)
        if line
    ]
    if len(examples) < LEAST:
        raise DataError(path, f"{len(examples)} sentences; at least {LEAST} are needed, one a line")
    splits: dict[str, list[Example]] = {"train": [], "dev": [], "test": []}
    shift = max(0, 10 - len(examples))
    for place, example in enumerate(examples, shift):
        splits[HELD_OUT.get(place % 10, "train")].append(example)
    return Corpus("text", splits, smallest_min_count(splits["train"]))
