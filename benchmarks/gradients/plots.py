"""The results of `gradients` as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.gradients.errors import DIRECTION, SQUARED, YARDSTICK, break_evens, error_of
from benchmarks.gradients.tables import by_label, error_in_time, middle_length
from benchmarks.results import Record, Results
from structdist.estimators import ESTIMATORS

DPI = 65
LEAST_ERROR, MOST_CALLS = 1e-2, 1e6  # that are shown
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
        _fill(column, rows, break_evens(rows, results.settings["calls"]))
        column[0].set_title(f"f = {function}")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside right upper")
    figure.savefig(path, dpi=DPI)
    plt.close(figure)


def _fill(column: Sequence[Axes], rows: list[Record], lines: list[Record]) -> None:
    """The panels of one reward, with its break-evens."""
    squared, direction, in_time, calls, temperature = column
    _over_length(
        squared, rows, "squared error", lambda row: max(error_of(row, SQUARED), LEAST_ERROR)
    )
    _over_length(direction, rows, DIRECTION, lambda row: error_of(row, DIRECTION))
    what = f"{DIRECTION}\nin the time of {YARDSTICK}"
    _over_length(in_time, rows, what, partial(error_in_time, rows=rows, criterion=DIRECTION))
    what = f"reward calls up to which\nit beats {YARDSTICK}"
    _over_length(calls, lines, what, _calls_by_direction)
    for axes in (squared, calls):
        axes.set_yscale("log")
    _over_temperature(temperature, rows)


def _calls_by_direction(line: Record) -> float | None:
    """Any number counts as the most that are shown; none cannot be shown on a log scale."""
    calls = line[DIRECTION]["calls"]
    return MOST_CALLS if calls is None else min(calls, MOST_CALLS) or None


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
    _label(axes, f"temperature, at T={length}", DIRECTION)


def _style(estimator: str) -> dict[str, str]:
    """The same in all panels; the yardstick is black."""
    place = list(ESTIMATORS).index(estimator)
    colour = "black" if estimator == YARDSTICK else f"C{place % 10}"
    return {"color": colour, "linestyle": STYLES[place // 10 % len(STYLES)], "marker": "."}


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
