"""Results of runs that are done, without their weights: small enough for version control.

They lie beside the study's file, in folders that look as those of the runs do. Where a run itself
is missing, the study takes them in its place: another machine goes on with the runs that are left,
and its report has all of them.
"""

from __future__ import annotations

import shutil

from models.files import write_text
from models.runs import COLUMNS, read_metrics
from models.study.plan import Study
from models.study.progress import SCORES, evaluation_path, points, unfinished


def keep_results(study: Study) -> list[str]:
    """Of every run that is done: settings, what was logged after each epoch, evaluation, scores.

    The names of these runs.
    """
    done = [run for run in study.runs if not run.kept and unfinished(study, run) is None]
    for run in done:
        folder, log = study.results / run.name, run.folder / "metrics.csv"
        rows = [row.values() for row in read_metrics(log) if row["metric"] in points(run)]
        write_text(folder / log.name, "".join(f"{','.join(row)}\n" for row in (COLUMNS, *rows)))
        for path in (run.folder / "config.yaml", evaluation_path(study, run), run.folder / SCORES):
            if path.exists():
                shutil.copyfile(path, folder / path.name)
    return [run.name for run in done]
