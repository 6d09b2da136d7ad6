"""Training curves as drawings: where lines, ticks and labels stand in the SVG of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from models.report.content import Chart, Curve, Points
from models.report.numbers import decimal

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 408, 12, 212  # of the area of the curves
BUCKETS = 175  # one for two units of width
COLOURS, DASHES = 8, ("", "7 3", "2 3")  # the style sheet has the colours

Places = list[tuple[str, str]]


@dataclass(frozen=True)
class Drawing:
    chart: Chart
    described: str  # for who cannot see it
    lines: list[tuple[int, Places]]  # the look of a run, and its points; one alone is a dot
    across: Places  # ticks: place and label
    upward: Places
    legend: list[tuple[str, str, int]]  # run, last value, look


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` drawn from `start` to `end`, with about five ticks at most."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> Axis:
        """An axis as wide as the values, and never of no width."""
        low, high = min(values), max(values)
        room = 0.0 if high > low else 0.05 * abs(low) or 0.5
        return cls(low - room, high + room, start, end)

    def rounded(self) -> Axis:
        """The same, a little wider, so that it begins and ends with a tick."""
        low = math.floor(self.low / self.step + 1e-9) * self.step
        high = math.ceil(self.high / self.step - 1e-9) * self.step
        return replace(self, low=min(low, self.low), high=max(high, self.high))

    def place(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def at(self, value: float) -> str:
        """The place of the value, as a drawing has it."""
        return f"{self.place(value):.1f}"

    @property
    def step(self) -> float:
        """The distance of ticks: 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        return next(power * nice for nice in (1, 2, 5, 10) if power * nice >= rough)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values inside the axis, with what is written beside them."""
        step = self.step
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        form = f",.{decimals}f" if 1e-4 <= step < 1e6 else ".3g"
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(i * step, format(i * step, form)) for i in range(first, last + 1)]


def drawings(charts: Sequence[Chart]) -> list[Drawing]:
    """All charts; a run looks the same in each."""
    runs = list(dict.fromkeys(curve.run for chart in charts for curve in chart.curves))
    return [_drawing(chart, runs) for chart in charts]


def dashes(look: int) -> str:
    return DASHES[look % len(DASHES)]


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


def _drawing(chart: Chart, runs: Sequence[str]) -> Drawing:
    pieces = [(runs.index(c.run), piece) for c in chart.curves for piece in finite_pieces(c.points)]
    points = [point for _, piece in pieces for point in piece] or [(0, 0.0), (1, 1.0)]
    across = Axis.over([float(step) for step, _ in points], LEFT, RIGHT)
    upward = Axis.over([value for _, value in points], BOTTOM, TOP).rounded()
    lines = [
        (look, [(across.at(x), upward.at(y)) for x, y in thinned(piece, BUCKETS)])
        for look, piece in pieces
    ]
    return Drawing(
        chart,
        " ".join(_in_words(curve) for curve in chart.curves),
        lines,
        [(across.at(value), label) for value, label in across.ticks()],
        [(upward.at(value), label) for value, label in upward.ticks()],
        [(curve.run, _last(curve), runs.index(curve.run)) for curve in chart.curves],
    )


def _last(curve: Curve) -> str:
    """The last value, and how many are no finite numbers."""
    if not curve.points:
        return "no values"
    last = decimal(max(curve.points, key=lambda point: point[0])[1])
    lost = sum(not math.isfinite(value) for _, value in curve.points)
    return f"{last} ({lost} of {len(curve.points)} not finite)" if lost else last


def _in_words(curve: Curve) -> str:
    finite = [point for piece in finite_pieces(curve.points) for point in piece]
    if not finite:
        return f"{curve.run}: no finite values."
    (first, start), (last, end) = finite[0], finite[-1]
    values = [value for _, value in finite]
    return (
        f"{curve.run}: from {decimal(start)} at step {first:,} to {decimal(end)} at step {last:,}, "
        f"lowest {decimal(min(values))}, highest {decimal(max(values))}."
    )
