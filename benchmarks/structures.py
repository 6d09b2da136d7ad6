"""The structures that can be compared, by name and by the type of their sizes."""

from __future__ import annotations

from benchmarks.linear_chains import LinearChains
from benchmarks.problem import Size
from benchmarks.segment_chains import SemiMarkovChains
from benchmarks.structure import Structure

LINEAR_CHAIN = LinearChains()
SEMI_MARKOV = SemiMarkovChains()
STRUCTURES: dict[str, Structure] = {s.name: s for s in (LINEAR_CHAIN, SEMI_MARKOV)}


def structure_of(size: Size) -> Structure:
    return next(s for s in STRUCTURES.values() if s.size_type is type(size))
