"""How well the segments of templates recover where true slots change.

A boundary is a place between two words of a sentence: one where a segment of the template starts,
a phrase or else a run of equal states, or one where the true slot is another than before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Boundaries(NamedTuple):
    """Shares of all boundaries; where there are none, none is wrong and none is missed."""

    precision: float  # of the template's boundaries that are true
    recall: float  # of the true boundaries that the template has

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total > 0 else 0.0


def boundary_recovery(
    starts: Iterable[Sequence[bool]], slots: Iterable[Sequence[str]]
) -> Boundaries:
    """Compares the starts of segments with slots, one entry per word, over all sentences."""
    counts: Counter[tuple[bool, bool]] = Counter()
    for begins, true in zip(starts, slots, strict=True):
        changes = [before != after for before, after in pairwise(true)]
        counts.update(zip(map(bool, begins[1:]), changes, strict=True))
    both, extra, missed = counts[True, True], counts[True, False], counts[False, True]
    return Boundaries(_share(both, extra), _share(both, missed))


def _share(right: int, others: int) -> float:
    return right / (right + others) if right + others else 1.0
