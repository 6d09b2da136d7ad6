"""Every tagger and seed, trained with one budget and scored."""

from __future__ import annotations

import copy
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

import torch
from torch import nn

from benchmarks.results import Record
from benchmarks.spans.batches import Vocabulary
from benchmarks.spans.corpus import Corpus, Sentence
from benchmarks.spans.encoder import Encoder, EncoderSizes
from benchmarks.spans.scores import Score, recall_by_size, score
from benchmarks.spans.taggers import TAGGERS, Tagger
from structdist.tagging import Span


@dataclass(frozen=True)
class Plan:
    taggers: Sequence[str]
    seeds: Sequence[int]
    epochs: int = 20
    batch: int = 32
    rate: float = 5e-3  # of Adam
    clip: float = 5.0  # the largest norm of a gradient
    sizes: EncoderSizes = field(default_factory=EncoderSizes)


@dataclass(frozen=True)
class Row:
    tagger: str
    seed: int
    epoch: int  # the one with the best F1 on dev, from 1 up
    dev: Score
    test: Score
    test_recall: dict[str, float]  # by the number of tokens
    seconds: float  # median CPU seconds of an epoch of training
    parameters: int
    losses: list[float]  # of each epoch
    dev_f1: list[float]


def run(plan: Plan, corpus: Corpus, report: Callable[[str], object]) -> Iterator[Record]:
    """Rows, as plain records, as they come. `report` hears of each epoch and of each result."""
    vocabulary = Vocabulary(corpus.train)
    for seed in plan.seeds:
        for name in plan.taggers:
            row = measure(name, seed, plan, corpus, vocabulary, report)
            report(f"{name}, seed {seed}: test F1 {100 * row.test.f1:.2f}")
            yield asdict(row)


def build(name: str, corpus: Corpus, vocabulary: Vocabulary, sizes: EncoderSizes) -> Tagger:
    """A tagger with random parameters; those of the encoder depend on the seed of torch alone."""
    encoder = Encoder(*vocabulary.sizes, sizes)
    return TAGGERS[name](encoder, corpus.labels, corpus.longest)


def measure(
    name: str,
    seed: int,
    plan: Plan,
    corpus: Corpus,
    vocabulary: Vocabulary,
    report: Callable[[str], object],
) -> Row:
    """Train a tagger, and score it as it was after the epoch with the best F1 on dev."""
    torch.manual_seed(seed)
    tagger = build(name, corpus, vocabulary, plan.sizes)
    fitted = fit(tagger, seed, plan, corpus, vocabulary, lambda line: report(f"{name}, {line}"))
    found = find(tagger, corpus.test, vocabulary)
    return Row(
        name,
        seed,
        fitted.epoch,
        fitted.dev_scores[fitted.epoch - 1],
        score(found, gold(corpus.test)),
        recall_by_size(found, gold(corpus.test)),
        statistics.median(fitted.seconds),
        sum(p.numel() for p in tagger.parameters()),
        fitted.losses,
        [s.f1 for s in fitted.dev_scores],
    )


@dataclass(frozen=True)
class Fitted:
    """What was seen in training, epoch by epoch."""

    losses: list[float]
    seconds: list[float]  # of the CPU
    dev_scores: list[Score]

    @property
    def epoch(self) -> int:
        """The one with the best F1 on dev, from 1 up."""
        f1 = [s.f1 for s in self.dev_scores]
        return f1.index(max(f1)) + 1


def fit(
    tagger: Tagger,
    seed: int,
    plan: Plan,
    corpus: Corpus,
    vocabulary: Vocabulary,
    report: Callable[[str], object],
) -> Fitted:
    """Train a tagger, and leave it as it was after the epoch with the best F1 on dev."""
    optimizer = torch.optim.Adam(tagger.parameters(), lr=plan.rate)
    order = random.Random(seed)
    fitted, best = Fitted([], [], []), tagger.state_dict()
    for epoch in range(1, plan.epochs + 1):
        begin = time.process_time()
        fitted.losses.append(_train(tagger, optimizer, plan, corpus, vocabulary, order))
        fitted.seconds.append(time.process_time() - begin)
        found = find(tagger, corpus.dev, vocabulary)
        fitted.dev_scores.append(score(found, gold(corpus.dev)))
        if fitted.epoch == epoch:
            best = copy.deepcopy(tagger.state_dict())
        report(
            f"seed {seed}, epoch {epoch}: loss {fitted.losses[-1]:.3f}, "
            f"dev F1 {100 * fitted.dev_scores[-1].f1:.2f}, {fitted.seconds[-1]:.1f} s"
        )
    tagger.load_state_dict(best)
    return fitted


def _train(
    tagger: Tagger,
    optimizer: torch.optim.Optimizer,
    plan: Plan,
    corpus: Corpus,
    vocabulary: Vocabulary,
    order: random.Random,
) -> float:
    """One epoch; the mean loss of a sentence."""
    tagger.train()
    total = 0.0
    for batch in vocabulary.shuffled(corpus.train, plan.batch, order):
        optimizer.zero_grad()
        loss = tagger.loss(batch)
        loss.backward()
        nn.utils.clip_grad_norm_(tagger.parameters(), plan.clip)
        optimizer.step()
        total += loss.item() * len(batch.sentences)
    return total / len(corpus.train)


@torch.no_grad()
def find(tagger: Tagger, sentences: Sequence[Sentence], vocabulary: Vocabulary) -> list[list[Span]]:
    """The spans that a tagger finds in each sentence."""
    tagger.eval()
    batches = vocabulary.batches(sentences, size=64)
    return [spans for batch in batches for spans in tagger.find(batch)]


def gold(sentences: Sequence[Sentence]) -> list[Sequence[Span]]:
    """The spans that there are in each sentence."""
    return [sentence.spans for sentence in sentences]
