"""How well latent states recover the true slots of words.

Both are labels of words; neither names the other. Homogeneity asks whether each state holds words
of one slot, completeness whether each slot's words share one state (Rosenberg and Hirschberg,
2007). States that split a slot cost completeness alone, states that mix slots homogeneity alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple


class Recovery(NamedTuple):
    """Each measure is from 0 to 1; 1 is best."""

    homogeneity: float  # 1 - H[slot | state] / H[slot]
    completeness: float  # 1 - H[state | slot] / H[state]
    v_measure: float  # their harmonic mean, also known as normalised mutual information
    many_to_one: float  # accuracy when every state stands for its most frequent slot


def recovery(states: Iterable[Sequence[int]], slots: Iterable[Sequence[str]]) -> Recovery:
    """Compares states with slots, sentence by sentence and word by word.

    One entry per word: states of an end mark or of padding must be cut off before. With a single
    slot there is nothing to find, so homogeneity is 1; a single state is complete in the same way.
    """
    pairs: Counter[tuple[int, str]] = Counter()
    for index, (mine, true) in enumerate(zip_longest(states, slots)):
        if mine is None or true is None:
            raise ValueError(f"sentence {index} has no {'states' if mine is None else 'slots'}")
        if len(mine) != len(true):
            raise ValueError(f"sentence {index} has {len(mine)} states but {len(true)} slots")
        pairs.update(zip(map(int, mine), true, strict=True))
    if not pairs:
        raise ValueError("no words to compare")
    of_state, of_slot, best = Counter[int](), Counter[str](), Counter[int]()
    for (state, slot), count in pairs.items():
        of_state[state] += count
        of_slot[slot] += count
        best[state] = max(best[state], count)
    mixed = math.fsum(n * math.log(of_state[state] / n) for (state, _), n in pairs.items())
    split = math.fsum(n * math.log(of_slot[slot] / n) for (_, slot), n in pairs.items())
    homogeneity = _explained(mixed, of_slot.values())
    completeness = _explained(split, of_state.values())
    total = homogeneity + completeness
    v_measure = 2 * homogeneity * completeness / total if total > 0 else 0.0
    return Recovery(homogeneity, completeness, v_measure, best.total() / pairs.total())


def _explained(left: float, counts: Collection[int]) -> float:
    """The share of the counts' entropy that is not left; rounding cannot take it below 0."""
    words = sum(counts)
    entropy = math.fsum(n * math.log(words / n) for n in counts)
    return max(0.0, 1 - left / entropy) if entropy > 0 else 1.0
