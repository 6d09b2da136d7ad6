"""How many spans were found: precision, recall and F1 of exact matches, over all sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from structdist.tagging import Span

SIZES = {"1": range(1, 2), "2": range(2, 3), "3+": range(3, 1000)}  # in tokens


@dataclass(frozen=True)
class Score:
    precision: float
    recall: float
    f1: float  # the harmonic mean of the two
    correct: int
    found: int
    gold: int


def score(found: Iterable[Sequence[Span]], gold: Iterable[Sequence[Span]]) -> Score:
    """A span is correct if its start, end and label are."""
    correct = num_found = num_gold = 0
    for ours, theirs in zip(found, gold, strict=True):
        correct += len(set(ours) & set(theirs))
        num_found += len(ours)
        num_gold += len(theirs)
    precision, recall = correct / max(num_found, 1), correct / max(num_gold, 1)
    f1 = 2 * correct / max(num_found + num_gold, 1)
    return Score(precision, recall, f1, correct, num_found, num_gold)


def recall_by_size(
    found: Sequence[Sequence[Span]], gold: Sequence[Sequence[Span]]
) -> dict[str, float]:
    """The recall of spans of each of `SIZES`."""
    return {
        name: score(
            found, [[s for s in spans if s.end - s.start in sizes] for spans in gold]
        ).recall
        for name, sizes in SIZES.items()
    }
