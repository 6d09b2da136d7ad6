"""The results of `tagging` as a table of means over seeds, and as a plot."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.plots import plt
from benchmarks.results import Results
from benchmarks.spans.tables import grouped, mean_and_spread, plot_dev_f1
from benchmarks.tables import Table, megabytes, number, ratio

PERCENTAGES = {"dev F1": "dev", "test F1": "free", "test F1, constrained": "constrained"}


def tagging_tables(results: Results) -> list[Table]:
    columns = ["library", "seeds", *PERCENTAGES, "ill-formed sentences"]
    columns += ["s an epoch", "of which the CRF", "CRF, over structdist", "CRF peak MB"]
    columns += ["first loss", "last loss"]
    groups = grouped(results, "library")
    crf_seconds = {
        library: statistics.median(row["crf_seconds"] for row in rows)
        for library, rows in groups.items()
    }
    ours = crf_seconds.get("structdist")
    lines = [
        [
            library,
            str(len(rows)),
            *(
                mean_and_spread([100 * row[key]["f1"] for row in rows])
                for key in PERCENTAGES.values()
            ),
            mean_and_spread([row["ill_formed"] for row in rows]),
            number(statistics.median(row["seconds"] for row in rows)),
            number(crf_seconds[library]),
            ratio(None if ours is None else crf_seconds[library] / ours),
            megabytes(rows[0]["crf_bytes"]),
            f"{statistics.mean(row['losses'][0] for row in rows):.4f}",
            f"{statistics.mean(row['losses'][-1] for row in rows):.4f}",
        ]
        for library, rows in groups.items()
    ]
    return [Table("WNUT-17, one BiLSTM under the CRF of each library", columns, lines)]


def plot_tagging(results: Results, path: Path) -> None:
    """F1 on dev by epoch, and where the CPU time of an epoch goes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    groups = grouped(results, "library")
    plot_dev_f1(left, groups)
    for place, rows in enumerate(groups.values()):
        crf = statistics.median(row["crf_seconds"] for row in rows)
        rest = statistics.median(row["seconds"] for row in rows) - crf
        right.bar(place, rest, color="0.8", label="the rest" if place == 0 else None)
        right.bar(place, crf, bottom=rest, color=f"C{place}")
    right.set_xticks(range(len(groups)), groups)
    right.set_ylabel("CPU seconds an epoch; the CRF in colour")
    right.legend(fontsize="small")
    figure.savefig(path, dpi=130)
    plt.close(figure)
