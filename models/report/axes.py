"""Where a chart puts its values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

Points = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` drawn from `start` to `end`, with at most about `count` ticks."""

    low: float
    high: float
    start: float
    end: float
    count: int = 5

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, count: int = 5) -> Axis:
        """An axis as wide as the values, and never of no width."""
        low, high = min(values), max(values)
        room = 0.0 if high > low else 0.05 * abs(low) or 0.5
        return cls(low - room, high + room, start, end, count)

    def rounded(self) -> Axis:
        """The same, a little wider, so that it begins and ends with a tick."""
        low = math.floor(self.low / self.step + 1e-9) * self.step
        high = math.ceil(self.high / self.step - 1e-9) * self.step
        return replace(self, low=min(low, self.low), high=max(high, self.high))

    def place(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def step(self) -> float:
        """Between ticks: 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / self.count
        power = 10.0 ** math.floor(math.log10(rough))
        return next(power * nice for nice in (1, 2, 5, 10) if power * nice >= rough)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values inside the axis, with what is written beside them."""
        step = self.step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(index * step, _label(index * step, step)) for index in range(first, last + 1)]


def finite_pieces(points: Points) -> list[list[tuple[int, float]]]:
    """The points by step, cut where a value is no finite number."""
    ordered = sorted(points, key=lambda point: point[0])
    pieces = groupby(ordered, key=lambda point: math.isfinite(point[1]))
    return [list(piece) for finite, piece in pieces if finite]


def thinned(points: Points, buckets: int) -> list[tuple[int, float]]:
    """Keeps about two points a bucket, its lowest and its highest, so that no spike is lost."""
    if len(points) <= 2 * buckets:
        return list(points)
    size = math.ceil(len(points) / buckets)
    kept = {0, len(points) - 1}
    for start in range(0, len(points), size):
        bucket = range(start, min(start + size, len(points)))
        kept |= {min(bucket, key=lambda i: points[i][1]), max(bucket, key=lambda i: points[i][1])}
    return [points[i] for i in sorted(kept)]


def _label(value: float, step: float) -> str:
    if not 1e-4 <= step < 1e6:
        return f"{value:.3g}"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{decimals}f}"
