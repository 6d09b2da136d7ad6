"""The results of `gradients` as a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.gradients.break_even import CALLS, TIME, YARDSTICK
from benchmarks.gradients.tables import by_label, middle_length, squared_error
from benchmarks.results import Record, Results

DPI = 110
STYLES = ("-", "--", ":", "-.")
Panel = Callable[[Axes, list[Record], list[Record]], None]  # of rows and break-evens of one reward


def plot_gradients(results: Results, path: Path) -> None:
    """A column for each reward; errors over length and temperature, and break-evens."""
    functions = list(dict.fromkeys(row["function"] for row in results.rows))
    panels: list[Panel] = [
        lambda axes, rows, _: _errors_over_length(axes, rows, CALLS),
        lambda axes, rows, _: _errors_over_length(axes, rows, TIME),
        lambda axes, _, lines: _break_evens(axes, lines),
        lambda axes, rows, _: _errors_over_temperature(axes, rows),
    ]
    size = 4.4 * len(functions) + 2.5, 3.6 * len(panels)
    figure, grid = plt.subplots(
        len(panels), len(functions), figsize=size, squeeze=False, layout="constrained"
    )
    for column, function in enumerate(functions):
        rows = [row for row in results.rows if row["function"] == function]
        lines = [line for line in results.summary if line["function"] == function]
        for axes, panel in zip(grid[:, column], panels, strict=True):
            panel(axes, rows, lines)
            axes.grid(alpha=0.3)
        grid[0, column].set_title(f"f = {function}")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside right upper")
    figure.savefig(path, dpi=DPI)
    plt.close(figure)


def _style(rows: list[Record], estimator: str) -> dict[str, str]:
    """One for each estimator, the same in all panels; the yardstick is black."""
    place = list(dict.fromkeys(row["estimator"] for row in rows)).index(estimator)
    colour = "black" if estimator == YARDSTICK else f"C{place % 10}"
    return {"color": colour, "linestyle": STYLES[place // 10 % len(STYLES)], "marker": "."}


def _at_middle_temperature(rows: list[Record]) -> list[Record]:
    temperatures = sorted({row["temperature"] for row in rows} - {None})
    middle = temperatures[len(temperatures) // 2] if temperatures else None
    return [row for row in rows if row["temperature"] in (None, middle)]


def _errors_over_length(axes: Axes, rows: list[Record], key: str) -> None:
    for name, group in by_label(_at_middle_temperature(rows)).items():
        points = [(row["length"], squared_error(row, rows, key)) for row in group]
        known = [(x, y) for x, y in points if y is not None]
        if known:
            axes.plot(*zip(*known, strict=True), label=name, **_style(rows, group[0]["estimator"]))
    what = "with as many reward calls" if key == CALLS else f"in the time of {YARDSTICK}"
    _label(axes, "T", f"squared error\n{what}")
    axes.set_xscale("log", base=2)


def _break_evens(axes: Axes, lines: list[Record]) -> None:
    for group in by_label(_at_middle_temperature(lines)).values():
        known = [(line["length"], line[CALLS]) for line in group if line[CALLS]]
        if known:
            axes.plot(*zip(*known, strict=True), **_style(lines, group[0]["estimator"]))
    _label(axes, "T", f"reward calls below which\n{YARDSTICK} is worse")
    axes.set_xscale("log", base=2)


def _errors_over_temperature(axes: Axes, rows: list[Record]) -> None:
    length = middle_length(rows)
    for name in dict.fromkeys(row["estimator"] for row in rows):
        mine = [row for row in rows if (row["estimator"], row["length"]) == (name, length)]
        errors = [row["squared_error"] for row in mine]
        if mine[0]["temperature"] is not None:
            axes.plot([row["temperature"] for row in mine], errors, **_style(rows, name))
        elif name == YARDSTICK:
            axes.axhline(errors[0], color="black")
    _label(axes, f"temperature, at T={length}", "squared error")
    axes.set_xscale("log")


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
