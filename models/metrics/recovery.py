"""How well latent states recover the true slots of words.

Both are labels of words; neither names the other. Homogeneity asks whether each state holds words
of one slot, completeness whether each slot's words share one state (Rosenberg and Hirschberg,
2007). States that split a slot cost completeness alone, states that mix slots homogeneity alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

Pairs = Mapping[tuple[int, str], int]  # how many words have this state and this slot


class Recovery(NamedTuple):
    """Each from 0 to 1; 1 is best."""

    homogeneity: float  # 1 - H[slot | state] / H[slot]
    completeness: float  # 1 - H[state | slot] / H[state]
    v_measure: float  # their harmonic mean
    many_to_one: float  # accuracy when every state stands for its most frequent slot

    @property
    def nmi(self) -> float:
        """2 I[state; slot] / (H[state] + H[slot]), which is the V-measure by another name."""
        return self.v_measure


def recovery(states: Iterable[Sequence[int]], slots: Iterable[Sequence[str]]) -> Recovery:
    """Compares states with slots, sentence by sentence and word by word.

    One entry per word: states of an end mark or of padding must be cut off before. With a single
    slot there is nothing to find, so homogeneity is 1; a single state is complete in the same way.
    """
    pairs = count_pairs(states, slots)
    homogeneity = _explained(_conditional_entropy(pairs, 0), _entropy(_sums(pairs, 1)))
    completeness = _explained(_conditional_entropy(pairs, 1), _entropy(_sums(pairs, 0)))
    v_measure = _harmonic_mean(homogeneity, completeness)
    return Recovery(homogeneity, completeness, v_measure, _many_to_one(pairs))


def count_pairs(
    states: Iterable[Sequence[int]], slots: Iterable[Sequence[str]]
) -> Counter[tuple[int, str]]:
    """How often each state meets each slot."""
    pairs: Counter[tuple[int, str]] = Counter()
    for index, (mine, true) in enumerate(zip_longest(states, slots)):
        if mine is None or true is None:
            raise ValueError(f"sentence {index} has no {'states' if mine is None else 'slots'}")
        if len(mine) != len(true):
            raise ValueError(f"sentence {index} has {len(mine)} states but {len(true)} slots")
        pairs.update(zip(map(int, mine), true, strict=True))
    if not pairs:
        raise ValueError("no words to compare")
    return pairs


def _sums(pairs: Pairs, side: int) -> Counter[Hashable]:
    sums: Counter[Hashable] = Counter()
    for pair, count in pairs.items():
        sums[pair[side]] += count
    return sums


def _entropy(counts: Mapping[Hashable, int]) -> float:
    total = sum(counts.values())
    return -math.fsum(n / total * math.log(n / total) for n in counts.values())


def _conditional_entropy(pairs: Pairs, given: int) -> float:
    """Of the other side of the pairs, given the side of that number."""
    sums, total = _sums(pairs, given), sum(pairs.values())
    return -math.fsum(n / total * math.log(n / sums[pair[given]]) for pair, n in pairs.items())


def _explained(left: float, entropy: float) -> float:
    """The share of the entropy that is not left; rounding cannot take it below 0."""
    return max(0.0, 1 - left / entropy) if entropy > 0 else 1.0


def _many_to_one(pairs: Pairs) -> float:
    most: dict[int, int] = {}
    for (state, _), count in pairs.items():
        most[state] = max(most.get(state, 0), count)
    return sum(most.values()) / sum(pairs.values())


def _harmonic_mean(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b > 0 else 0.0
