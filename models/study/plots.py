"""Curves of a study as drawings: the mean of each group, and between which values its seeds lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from models.report.charts import Axis, dashes
from models.report.page import template
from models.study.plan import StudyRun
from models.study.progress import epochs
from models.study.tables import Groups, cpu_minutes

PLOT = Path(__file__).with_name("plot.svg")
WIDTH, HEIGHT = 820, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 540, 30, 370  # of the area of the curves
# Far apart for most kinds of colour blindness: Okabe and Ito (2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


class Point(NamedTuple):
    """A group after an epoch: means over its seeds, and between which values these lie."""

    place: float
    value: float
    low: float
    high: float


def plot(groups: Groups, metric: str, across: str) -> str:
    """An SVG of the metric after each epoch, against `epoch` or `CPU minutes`."""
    found = {label: _curve(runs, metric, across) for label, runs in groups.items()}
    curves = {label: curve for label, curve in found.items() if curve}
    points = list(chain(*curves.values())) or [Point(0, 0, 0, 0)]
    # Early values are far off, and do not fit: those of the second half of all epochs do.
    half = max(map(len, curves.values()), default=0) // 2
    later = [point.high for curve in curves.values() for point in curve[half:]]
    x = Axis.over([point.place for point in points], LEFT, RIGHT)
    y = Axis.over([min(point.low for point in points), *later], BOTTOM, TOP).rounded()
    bands = []
    for look, (label, curve) in enumerate(curves.items()):
        places, line, low, high = zip(*curve, strict=True)
        area = [*zip(places, low, strict=True), *zip(places[::-1], high[::-1], strict=True)]
        style = COLOURS[look % len(COLOURS)], dashes(look // len(COLOURS))
        bands.append((label, *style, zip(places, line, strict=True), area))
    box, title = (WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM), f"{metric} by {across}"
    return template(PLOT).render(bands=bands, box=box, x=x, y=y, across=across, title=title)


def _curve(runs: Sequence[StudyRun], metric: str, across: str) -> list[Point]:
    """After each epoch that all runs have."""
    values = list(zip(*(epochs(run, metric) for run in runs), strict=False))
    numbers = [(float(epoch),) for epoch in range(1, len(values) + 1)]
    places = numbers if across == "epoch" else zip(*map(cpu_minutes, runs), strict=False)
    return [
        Point(mean(place), mean(own), min(own), max(own))
        for place, own in zip(places, values, strict=False)
        if all(map(math.isfinite, own))
    ]
