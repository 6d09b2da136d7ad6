"""Every library and seed: train, find entities with constraints and without, and keep the row."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks.results import Record
from benchmarks.spans.batches import Vocabulary
from benchmarks.spans.corpus import Corpus
from benchmarks.spans.encoder import Encoder
from benchmarks.spans.scores import Score, score
from benchmarks.spans.training import Plan, find, fit, gold
from benchmarks.tagging.taggers import LIBRARIES, LibraryTagger


@dataclass(frozen=True)
class Row:
    library: str
    seed: int
    epoch: int  # the one with the best F1 on dev, from 1 up
    dev: Score
    free: Score  # on test, any tags
    constrained: Score  # on test, well-formed tags alone
    ill_formed: int  # sentences of test with ill-formed tags, where any may be
    seconds: float  # median CPU seconds of an epoch of training
    crf_seconds: float  # of which the CRF, forward and backward; the mean
    crf_bytes: int  # the most it allocates at one time, for the longest sentences
    losses: list[float]  # of each epoch
    dev_f1: list[float]


def run(
    plan: Plan,
    corpus: Corpus,
    folder: Path,
    report: Callable[[str], object],
    double: bool = False,
) -> Iterator[Record]:
    """Rows, as plain records. Those that a folder holds already, of the same plan, are taken."""
    vocabulary = Vocabulary(corpus.train)
    folder.mkdir(parents=True, exist_ok=True)
    settings = settings_of(plan) | ({"double": True} if double else {})
    for seed in plan.seeds:
        for library in plan.taggers:
            path = folder / f"{library}-{seed}.json"
            kept = json.loads(path.read_text()) if path.exists() else {}
            if kept.get("settings") != settings:
                tagger = build(library, seed, plan, corpus, vocabulary)
                tagger = tagger.double() if double else tagger
                row = measure(library, tagger, seed, plan, corpus, vocabulary, report)
                kept = {"settings": settings, "row": asdict(row)}
                path.write_text(json.dumps(kept) + "\n")
            yield kept["row"]


def settings_of(plan: Plan) -> Record:
    """What a row depends on, beside its library and seed."""
    every = asdict(plan)
    return {key: every[key] for key in ("epochs", "batch", "rate", "clip", "sizes")}


def build(
    library: str, seed: int, plan: Plan, corpus: Corpus, vocabulary: Vocabulary
) -> LibraryTagger:
    """A tagger whose initial parameters depend on the seed alone."""
    torch.manual_seed(seed)
    encoder = Encoder(*vocabulary.sizes, plan.sizes)
    return LIBRARIES[library][0](encoder, corpus.labels, corpus.longest)


def measure(
    library: str,
    tagger: LibraryTagger,
    seed: int,
    plan: Plan,
    corpus: Corpus,
    vocabulary: Vocabulary,
    report: Callable[[str], object],
) -> Row:
    fitted = fit(tagger, seed, plan, corpus, vocabulary, lambda line: report(f"{library}, {line}"))
    crf_seconds = tagger.crf_seconds / plan.epochs
    tagger.ill_formed = 0
    free = score(find(tagger, corpus.test, vocabulary), gold(corpus.test))
    ill_formed, tagger.constrained = tagger.ill_formed, True
    constrained = score(find(tagger, corpus.test, vocabulary), gold(corpus.test))
    longest = sorted(corpus.train, key=lambda sentence: -len(sentence.words))[: plan.batch]
    return Row(
        library,
        seed,
        fitted.epoch,
        fitted.dev_scores[fitted.epoch - 1],
        free,
        constrained,
        ill_formed,
        statistics.median(fitted.seconds),
        crf_seconds,
        tagger.crf_bytes(vocabulary.batch(longest)),
        fitted.losses,
        [s.f1 for s in fitted.dev_scores],
    )
