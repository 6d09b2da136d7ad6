"""One picture for each command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.contenders import CONTENDERS
from benchmarks.estimates import LABEL
from benchmarks.neighbours import beside
from benchmarks.results import Record, Results, value_at
from benchmarks.samplers import FLOOR
from benchmarks.tables import SIZES, size_of

DPI = 130
COLOURS = {contender.name: f"C{place}" for place, contender in enumerate(CONTENDERS)}


def _finish(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=DPI)
    plt.close(figure)


def _names(rows: Sequence[Record], key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows))


def plot_samplers(results: Results, path: Path) -> None:
    """Bars of the heaviest timing of each operation; a panel for each size."""
    _sampler_panels(results.rows, beside(results.busy), path)


def plot_estimates(results: Results, path: Path) -> None:
    """The same bars, of estimates, and said to be such."""
    rows = [
        row | {key: _exactly(row, key) for key in ("forward", "forward_backward")}
        for row in results.rows
    ]
    _sampler_panels(rows, f": {LABEL}, {results.settings['card']['name']}", path)


def _exactly(row: Record, key: str) -> Record | None:
    """An estimate in the place of a timing: its quartiles are itself."""
    seconds = value_at(row, f"estimate.{key}")
    return None if seconds is None else dict.fromkeys(("median", "lower", "upper"), seconds)


def _sampler_panels(rows: Sequence[Record], title: str, path: Path) -> None:
    sizes = list(dict.fromkeys(map(size_of, rows)))
    figure, panels = plt.subplots(
        len(sizes), 1, figsize=(10, 3.6 * len(sizes)), squeeze=False, layout="constrained"
    )
    for axes, size in zip(panels[:, 0], sizes, strict=True):
        _sampler_panel(axes, [row for row in rows if size_of(row) == size])
        axes.set_title(size + title)
    _finish(figure, path)


def _size(row: Record) -> tuple[int, int, int]:
    return row["batch"], row["length"], row["states"]


def _heaviest(row: Record) -> Record:
    """Its longest timing; empty where it has none."""
    return row["forward_backward"] or row["forward"] or {}


def _sampler_panel(axes: Axes, rows: list[Record]) -> None:
    timed = [row for row in rows if row["operation"] != FLOOR and _heaviest(row)]
    operations, contenders = _names(timed, "operation"), _names(timed, "contender")
    width = 0.8 / max(len(contenders), 1)
    for place, contender in enumerate(contenders):
        mine = [row for row in timed if row["contender"] == contender]
        x = [operations.index(row["operation"]) + (place + 0.5) * width - 0.4 for row in mine]
        timings = [_heaviest(row) for row in mine]
        y = [1e3 * t["median"] for t in timings]
        below = [1e3 * (t["median"] - t["lower"]) for t in timings]
        above = [1e3 * (t["upper"] - t["median"]) for t in timings]
        axes.bar(x, y, width, yerr=[below, above], label=contender, color=COLOURS.get(contender))
    floors = [_heaviest(row) for row in rows if row["operation"] == FLOOR]
    if floors:
        axes.axhline(1e3 * floors[0]["median"], color="gray", linestyle=":", label="floor (3T mm)")
    axes.set_xticks(range(len(operations)), operations, rotation=20)
    axes.set_yscale("log")
    axes.set_ylabel("ms (forward+backward\nwhere differentiable)")
    axes.legend(fontsize="small")


def plot_scaling(results: Results, path: Path) -> None:
    """Time above, memory below; a column for each axis; exponents in the legend."""
    axes_names = _names(results.rows, "axis")
    figure, panels = plt.subplots(
        2, len(axes_names), figsize=(5.2 * len(axes_names), 8), squeeze=False, layout="constrained"
    )
    for column, axis in enumerate(axes_names):
        for line in (line for line in results.summary if line["axis"] == axis):
            mine = [row for row in results.rows if row["time"] and _same_line(row, line)]
            x = [row[axis] for row in mine]
            times = [1e3 * row["time"]["median"] for row in mine]
            sizes = [row["bytes"] / 1e6 for row in mine]
            _scaling_line(panels[0, column], x, times, line, "time_exponent")
            _scaling_line(panels[1, column], x, sizes, line, "memory_exponent")
        panels[0, column].set_ylabel("ms")
        panels[1, column].set_ylabel("peak MB")
        for axes in panels[:, column]:
            _log_axes(axes, axis)
    _finish(figure, path)


def _same_line(row: Record, line: Record) -> bool:
    return all(row[key] == line[key] for key in ("operation", "contender", "axis"))


def _scaling_line(axes: Axes, x: list[int], y: list[float], line: Record, exponent: str) -> None:
    power = "?" if line[exponent] is None else f"{line[exponent]:.2f}"
    label = f"{line['contender']}, {line['operation']}: ^{power}"
    axes.plot(
        x, y, marker="o", linestyle="-" if line["contender"] == "structdist" else "--", label=label
    )


def _log_axes(axes: Axes, name: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel(next(letter for letter, axis in SIZES.items() if axis == name))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small")


def plot_train_steps(results: Results, path: Path) -> None:
    """A bar for each estimator."""
    _bars({row["work"]: row["time"] for row in results.rows}, "ms a batch", path)


def plot_load(results: Results, path: Path) -> None:
    """A bar for each size and number of neighbours."""
    timed = [row for row in results.rows if row["time"]]
    bars = {
        f"{row['operation']}, {'x'.join(map(str, _size(row)))}, {row['busy']} busy": row["time"]
        for row in timed
    }
    _bars(bars, "ms", path)


def plot_ratios(results: Results, path: Path) -> None:
    """A bar for each, as a share of the limit that its goal sets; its line goes over all rounds."""
    rows = [row for row in results.rows if row["value"]][::-1]
    shares = [
        {key: row["value"][key] / row["goal"]["limit"] for key in ("median", "lowest", "highest")}
        for row in rows
    ]
    figure, axes = plt.subplots(figsize=(10, 1.5 + 0.35 * len(rows)), layout="constrained")
    errors = [[abs(x[end] - x["median"]) for x in shares] for end in ("lowest", "highest")]
    wanted = [">" if row["goal"]["at_least"] else "<" for row in rows]
    names = [f"{row['work']} ({sign} 1)" for row, sign in zip(rows, wanted, strict=True)]
    axes.barh(names, [x["median"] for x in shares], xerr=errors)
    axes.axvline(1, color="gray", linestyle=":")
    axes.set_xscale("log")
    axes.set_xlabel("share of the limit")
    _finish(figure, path)


def plot_overhead(results: Results, path: Path) -> None:
    """A bar for each operation, and for each part of log Z with its gradient."""
    bars = {
        f"{row['operation']}{', f+b' * row['backward']}{_part(row)}": row["time"]
        for row in results.rows
    }
    _bars(bars, "ms", path)


def _part(row: Record) -> str:
    return "" if row["part"] is None else f": {row['part']}"


def _bars(times: dict[str, Record], label: str, path: Path) -> None:
    """A bar for each timing, from the top down; its line goes from quartile to quartile."""
    figure, axes = plt.subplots(figsize=(8, 1.5 + 0.35 * len(times)), layout="constrained")
    names, timings = list(times)[::-1], list(times.values())[::-1]
    medians = [1e3 * t["median"] for t in timings]
    errors = [[1e3 * abs(t[end] - t["median"]) for t in timings] for end in ("lower", "upper")]
    axes.barh(names, medians, xerr=errors)
    axes.set_xlabel(label)
    _finish(figure, path)
