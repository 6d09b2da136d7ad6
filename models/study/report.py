"""A page of Markdown about a study, from what is in the folders of its runs.

Its headings are of the second and third level, to be a section of another page.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from models.files import read_json, write_text
from models.report.content import Cell, Grid
from models.study.plan import Study, StudyRun
from models.study.plots import plot
from models.study.progress import (
    conflicts,
    epochs,
    evaluation_path,
    nll_metric,
    split,
    unfinished,
)
from models.study.tables import (
    Groups,
    budget_minutes,
    budget_table,
    flatness_table,
    nats_table,
    results_table,
    scores_table,
)

PLOTS = {"epoch": "by-epoch.svg", "CPU minutes": "by-cpu-time.svg"}


def write_report(study: Study) -> Path:
    """The page and its plots, in the study's folder; the path of the page."""
    left_out = {run: why for run in study.runs if (why := unfinished(study, run))}
    groups = {
        runs[0].label: [run for run in runs if run not in left_out]
        for runs in study.groups().values()
    }
    ended = {label: runs for label, runs in groups.items() if runs}
    sections = [*_opening(study), *(_tables(study, ended) if ended else ["No run is done yet."])]
    drawn = ended | {f"{run.name} (unfinished)": [run] for run in left_out if _is_drawn(run)}
    if drawn:
        metric = nll_metric(study.runs)
        for across, name in PLOTS.items():
            write_text(study.folder / name, plot(drawn, metric, across))
        sections += ["### Curves", *(f"![{metric} by {x}]({name})" for x, name in PLOTS.items())]
    if left_out:
        lines = [f"- {run.name}: {why}" for run, why in left_out.items()]
        sections += ["### Not in the tables", "\n".join(lines)]
    path = study.folder / "report.md"
    write_text(path, "\n\n".join(sections) + "\n")
    return path


def _is_drawn(run: StudyRun) -> bool:
    return not conflicts(run) and bool(epochs(run, "dev/bound"))


def _opening(study: Study) -> Iterator[str]:
    """What was run: the commands, and the settings of each group."""
    yield f"## {study.path.stem}"
    command = f"    python -m models study {study.path}"
    yield f"{command}\n{command} --report"
    options = {runs[0].label: runs[0].options for runs in study.groups().values()}
    lines = [f"- {label}: `train {shlex.join(own)}`" for label, own in options.items()]
    yield "Each run is an ordinary one; those of the first seeds:\n\n" + "\n".join(lines)


def _tables(study: Study, groups: Groups) -> Iterator[str]:
    metric = nll_metric(study.runs)
    name = f"`{metric}`" + (" (importance-sampled)" if metric == "dev/nll" else "")
    yield "### Results"
    yield _about_results(study, groups)
    yield _markdown(results_table(study, groups))
    if study.score is not None:
        yield "### Scores of what was written"
        yield f"From the {split(study)} split; all but NIST and CIDEr in percent."
        yield _markdown(scores_table(groups))
    minutes = budget_minutes(groups)
    if minutes is not None:  # some runs have templates
        yield "### At equal CPU time"
        yield (
            f"{name} after shares of the {minutes:.3g} CPU minutes that the quickest run with "
            "templates trained for, on the line between the epochs before and after; where "
            "training took less, the last value. Learning rates fall over the epochs of each run: "
            "before its end a run is worse than one planned for that time would be."
        )
        yield _markdown(budget_table(groups, metric, minutes))
        yield "### Where the nats go"
        yield "The bound is the sum of the first two, less the entropy; dev set, nats per sentence."
        yield _markdown(nats_table(groups))
    yield "### How flat the curves are"
    yield f"{name} over the last quarter of the epochs."
    yield _markdown(flatness_table(groups, metric))


def _about_results(study: Study, groups: Groups) -> str:
    about = "Means over seeds ± standard deviations; NMI and shares are in percent."
    if study.evaluate is None:
        return about
    first = read_json(evaluation_path(study, next(iter(groups.values()))[0]))
    size = f"{first['sentences']:,} sentences, {first['samples']} importance samples"
    return f"On the {split(study)} split: {size}. {about}"


def _markdown(grid: Grid) -> str:
    words = [column in ("", "nats") for column in grid.columns]
    rule = ["---" if word else "---:" for word in words]
    rows = [grid.columns, rule, *grid.rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows)


def _cell(cell: Cell) -> str:
    return "-" if cell is None else str(cell).replace("|", "\\|")
