"""The results of `spans` as a table of means and spreads over seeds, and as a plot."""

from __future__ import annotations

import statistics
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.results import Record, Results, value_at
from benchmarks.spans.scores import SIZES
from benchmarks.tables import Table

PERCENTAGES = {
    "dev F1": "dev.f1",
    "test precision": "test.precision",
    "test recall": "test.recall",
    "test F1": "test.f1",
    **{f"test recall, length {size}": f"test_recall.{size}" for size in SIZES},
}


def grouped(results: Results, key: str) -> dict[str, list[Record]]:
    """The rows of each tagger, or of each library."""
    groups: dict[str, list[Record]] = {}
    for row in results.rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def span_tables(results: Results) -> list[Table]:
    columns = ["tagger", "seeds", *PERCENTAGES, "epoch", "s an epoch", "parameters"]
    lines = []
    for tagger, rows in grouped(results, "tagger").items():
        values = {path: [value_at(row, path) for row in rows] for path in PERCENTAGES.values()}
        lines.append(
            [
                tagger,
                str(len(rows)),
                *(mean_and_spread([100 * x for x in group]) for group in values.values()),
                ", ".join(str(row["epoch"]) for row in rows),
                f"{statistics.median(row['seconds'] for row in rows):.1f}",
                f"{rows[0]['parameters']:,}",
            ]
        )
    return [Table("WNUT-17, entities found exactly, in %", columns, lines)]


def mean_and_spread(values: list[float]) -> str:
    """The mean, and the standard deviation of a sample if there are two or more."""
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.1f}"


def plot_spans(results: Results, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    plot_dev_f1(axes, grouped(results, "tagger"))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def plot_dev_f1(axes: Axes, groups: dict[str, list[Record]]) -> None:
    """F1 on dev after each epoch: a line for each seed, a colour for each group."""
    for place, (name, rows) in enumerate(groups.items()):
        for row in rows:
            epochs = range(1, len(row["dev_f1"]) + 1)
            label = name if row is rows[0] else None
            axes.plot(epochs, [100 * f1 for f1 in row["dev_f1"]], color=f"C{place}", label=label)
    axes.set_xlabel("epoch")
    axes.set_ylabel("dev F1, %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
