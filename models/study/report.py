"""A page of Markdown about a study, from what is in the folders of its runs."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

from models.files import read_json, write_text
from models.report.page import template
from models.study import tables
from models.study.plan import Study
from models.study.plots import plot
from models.study.progress import conflicts, epochs, evaluation_path, nll_metric, split, unfinished

PAGE = Path(__file__).with_name("report.md")
PLOTS = {"epoch": "by-epoch.svg", "CPU minutes": "by-cpu-time.svg"}


def write_report(study: Study) -> Path:
    """The page and its plots, in the study's folder; the path of the page."""
    left_out = {run: why for run in study.runs if (why := unfinished(study, run))}
    ended = {
        runs[0].label: own
        for runs in study.groups().values()
        if (own := [run for run in runs if run not in left_out])
    }
    begun = [run for run in left_out if not conflicts(run) and epochs(run, "dev/bound")]
    drawn = ended | {f"{run.name} (unfinished)": [run] for run in begun}
    metric, minutes = nll_metric(study.runs), tables.budget_minutes(ended)
    for across, name in PLOTS.items() if drawn else ():
        write_text(study.folder / name, plot(drawn, metric, across))
    evaluated = [evaluation_path(study, runs[0]) for runs in ended.values() if study.evaluate]
    page = template(PAGE, command=shlex.join).render(
        study=study,
        split=split(study),
        ended=ended,
        left_out=left_out,
        metric=metric,
        minutes=minutes,
        evaluation=read_json(evaluated[0]) if evaluated else None,
        results=tables.table(ended, partial(tables.evaluated, study)) if evaluated else None,
        scores=tables.table(ended, tables.scored) if study.score is not None else None,
        budget=tables.table(ended, partial(tables.after_budgets, metric, minutes or 0.0)),
        nats=tables.nats_table(ended),
        flatness=tables.table(ended, partial(tables.at_the_end, metric)),
        plots=PLOTS if drawn else {},
    )
    path = study.folder / PAGE.name
    write_text(path, page)
    return path
