"""Training curves as drawings: where lines, ticks and labels stand in the SVG of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.report.axes import Axis, finite_pieces, thinned
from models.report.content import Chart, Curve
from models.report.numbers import decimal

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 408, 12, 212  # of the area of the curves
BUCKETS = 175  # one for two units of width
COLOURS, DASHES = 8, ("", "7 3", "2 3")  # the style sheet has the colours

Ticks = list[tuple[str, str]]  # place and label


@dataclass(frozen=True)
class Line:
    """One or more points; one alone is a dot."""

    look: int  # of its run
    places: list[tuple[str, str]]


@dataclass(frozen=True)
class Drawing:
    chart: Chart
    described: str  # for who cannot see it
    lines: list[Line]
    across: Ticks
    upward: Ticks
    legend: list[tuple[str, str, int]]  # run, last value, look


def drawings(charts: Sequence[Chart]) -> list[Drawing]:
    """All charts; a run looks the same in each."""
    runs = dict.fromkeys(curve.run for chart in charts for curve in chart.curves)
    looks = {run: look for look, run in enumerate(runs)}
    return [_drawing(chart, looks) for chart in charts]


def colour(look: int) -> str:
    return f"c{look % COLOURS}"


def dashes(look: int) -> str:
    return DASHES[look % len(DASHES)]


def _drawing(chart: Chart, looks: Mapping[str, int]) -> Drawing:
    pieces = [(looks[c.run], piece) for c in chart.curves for piece in finite_pieces(c.points)]
    points = [point for _, piece in pieces for point in piece]
    lines, across, upward = [], Axis(0, 1, LEFT, RIGHT), Axis(0, 1, BOTTOM, TOP)
    if points:
        across = Axis.over([float(step) for step, _ in points], LEFT, RIGHT)
        upward = Axis.over([value for _, value in points], BOTTOM, TOP).rounded()
    for look, piece in pieces:
        kept = thinned(piece, BUCKETS)
        lines.append(Line(look, [(_at(across, step), _at(upward, value)) for step, value in kept]))
    return Drawing(
        chart,
        " ".join(_in_words(curve) for curve in chart.curves),
        lines,
        [(_at(across, value), label) for value, label in across.ticks()],
        [(_at(upward, value), label) for value, label in upward.ticks()],
        [(curve.run, _last(curve), looks[curve.run]) for curve in chart.curves],
    )


def _at(axis: Axis, value: float) -> str:
    return f"{axis.place(value):.1f}"


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
