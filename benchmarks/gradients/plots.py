"""The results of `gradients` as a picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.gradients.errors import DIRECTION, SQUARED, YARDSTICK, error_of
from benchmarks.gradients.tables import by_label, error_in_time, middle_length
from benchmarks.results import Record, Results
from structdist.estimators import ESTIMATORS

DPI = 90
STYLES = ("-", "--", ":", "-.")
Value = Callable[[Record], float | None]


def plot_gradients(results: Results, path: Path) -> None:
    """A column for each reward: errors over length and temperature, and break-evens."""
    functions = list(dict.fromkeys(row["function"] for row in results.rows))
    size = 4.2 * len(functions) + 2.5, 3.4 * 5
    figure, grid = plt.subplots(
        5, len(functions), figsize=size, squeeze=False, layout="constrained"
    )
    for column, function in zip(grid.T, functions, strict=True):
        rows = [row for row in results.rows if row["function"] == function]
        lines = [line for line in results.summary if line["function"] == function]
        _over_length(column[0], rows, "squared error", lambda row: error_of(row, SQUARED))
        _over_length(column[1], rows, "error of direction", lambda row: error_of(row, DIRECTION))
        _over_length(
            column[2],
            rows,
            f"error of direction\nin the time of {YARDSTICK}",
            partial(error_in_time, rows=rows, criterion=DIRECTION),
        )
        _over_length(
            column[3],
            lines,
            f"reward calls up to which it\nbeats {YARDSTICK} by direction",
            lambda line: line[DIRECTION]["calls"] or None,
        )
        _over_temperature(column[4], rows)
        column[0].set_title(f"f = {function}")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside right upper")
    figure.savefig(path, dpi=DPI)
    plt.close(figure)


def _over_length(axes: Axes, rows: list[Record], what: str, value: Value) -> None:
    """One line for each estimator, at the middle one of its temperatures."""
    temperatures = sorted({row["temperature"] for row in rows} - {None})
    shown = None, *temperatures[len(temperatures) // 2 :][:1]
    for name, group in by_label([r for r in rows if r["temperature"] in shown]).items():
        points = [(row["length"], value(row)) for row in group]
        known = [(x, y) for x, y in points if y is not None]
        if known:
            axes.plot(*zip(*known, strict=True), label=name, **_style(group[0]["estimator"]))
    axes.set_xscale("log", base=2)
    _label(axes, "T", what)


def _over_temperature(axes: Axes, rows: list[Record]) -> None:
    length = middle_length(rows)
    for name in dict.fromkeys(row["estimator"] for row in rows):
        mine = [row for row in rows if (row["estimator"], row["length"]) == (name, length)]
        errors = [error_of(row, DIRECTION) for row in mine]
        if mine[0]["temperature"] is not None:
            axes.plot([row["temperature"] for row in mine], errors, **_style(name))
        elif name == YARDSTICK:
            axes.axhline(errors[0], **_style(name))
    axes.set_xscale("log", base=2)
    _label(axes, f"temperature, at T={length}", "error of direction")


def _style(estimator: str) -> dict[str, str]:
    """The same in all panels; the yardstick is black."""
    place = list(ESTIMATORS).index(estimator)
    colour = "black" if estimator == YARDSTICK else f"C{place % 10}"
    return {"color": colour, "linestyle": STYLES[place // 10 % len(STYLES)], "marker": "."}


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
