"""Curves of a study as drawings: the mean of each group, and between which values its seeds lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from models.report.charts import Axis, dashes
from models.study.plan import StudyRun
from models.study.progress import epochs
from models.study.tables import Groups, cpu_minutes

WIDTH, HEIGHT = 820, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 540, 30, 370  # of the area of the curves
# Far apart for most kinds of colour blindness: Okabe and Ito (2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


@dataclass(frozen=True)
class Band:
    """A group's curve: places of its mean, and of the lowest and highest of its seeds."""

    label: str
    colour: str
    dashes: str
    line: str
    area: str


def plot(groups: Groups, metric: str, across: str) -> str:
    """An SVG of the metric after each epoch, against `epoch` or `CPU minutes`."""
    curves = {label: _curve(runs, metric, across) for label, runs in groups.items()}
    curves = {label: curve for label, curve in curves.items() if curve}
    every = [point for curve in curves.values() for point in curve] or [(0.0, 0.0, 0.0, 0.0)]
    x_axis = Axis.over([point[0] for point in every], LEFT, RIGHT)
    # Early values are far off: the axis begins where every curve has half its way behind it.
    later = [point[3] for curve in curves.values() for point in curve[len(curve) // 2 :]]
    y_axis = Axis.over([min(point[2] for point in every), *later], BOTTOM, TOP).rounded()
    bands = []
    for look, (label, curve) in enumerate(curves.items()):
        places = [(x_axis.place(x), *map(y_axis.place, values)) for x, *values in curve]
        edges = [(x, low) for x, _, low, _ in places] + [(x, high) for x, *_, high in places[::-1]]
        line = _path([(x, y) for x, y, *_ in places])
        style = COLOURS[look % len(COLOURS)], dashes(look // len(COLOURS))
        bands.append(Band(label, *style, line, _path(edges)))
    return _template().render(
        bands=bands,
        box=(WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM),
        x_ticks=[(f"{x_axis.place(value):.1f}", label) for value, label in x_axis.ticks()],
        y_ticks=[(f"{y_axis.place(value):.1f}", label) for value, label in y_axis.ticks()],
        across=across,
        title=f"{metric} by {across}",
    )


def _curve(
    runs: Sequence[StudyRun], metric: str, across: str
) -> list[tuple[float, float, float, float]]:
    """Means of where and what, the lowest and the highest, after each epoch that all runs have."""
    values = list(zip(*(epochs(run, metric) for run in runs), strict=False))
    numbers = [(float(epoch),) for epoch in range(1, len(values) + 1)]
    places = numbers if across == "epoch" else zip(*map(cpu_minutes, runs), strict=False)
    return [
        (mean(place), mean(own), min(own), max(own))
        for place, own in zip(places, values, strict=False)
        if all(map(math.isfinite, own))
    ]


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    settings: Any = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True}
    return Environment(loader=loader, **settings).get_template("plot.svg")
