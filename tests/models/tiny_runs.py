"""Trained runs of every task, each made in less than a second, whose corpora open by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from models.data.corpus import Corpus, Example, save_corpus
from models.data.tasks import Task
from models.restaurants.corpus import synthetic_corpus
from models.training.fit import fit
from tests.models.training.conftest import tiny

STATES = 3
SIZES = (50, 10, 4)  # of the splits of `restaurants`
SUBJECTS, VERBS, PLACES = ("cat", "dog", "man"), ("sits", "sleeps"), ("mat", "bench", "hill")


def restaurants() -> Corpus:
    return synthetic_corpus(*SIZES)


def captions() -> Corpus:
    """Two sentences about each of a few pictures."""
    scenes = [(s, v, p) for s in SUBJECTS for v in VERBS for p in PLACES]
    examples = [
        Example(tuple(words.split()), words, group=f"{s} {v} {p}")
        for s, v, p in scenes
        for words in (f"a {s} {v} on a {p} .", f"on the {p} there is a {s} that {v} .")
    ]
    return Corpus("coco", {"train": examples, "dev": examples[:12], "test": examples[12:20]})


def train(folder: Path, task: Task = "data2text", **changes: dict[str, Any]) -> Path:
    """A run in `folder`, on a corpus beside it; changes as those of `tiny`."""
    name = "coco" if task == "paraphrase" else "e2e"
    data = {"corpus": name, "directory": str(folder.parent / f"{name}-data")}
    corpus = captions() if task == "paraphrase" else restaurants()
    save_corpus(corpus, Path(data["directory"]))
    training = {"epochs": 2, "variance_every": 0} | changes.pop("training", {})
    fit(replace(tiny(data=data, training=training, **changes), task=task), corpus, folder)
    return folder
