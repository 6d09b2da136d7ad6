"""How far a run of a study is, by what is in its folder, and what is left to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from models.errors import RunError
from models.files import read_json
from models.generation.writer import FILES
from models.report.content import Points
from models.report.logs import read_points
from models.runs import BEST, LAST, PREVIOUS, checkpoint_path, load_checkpoint, read_config
from models.study.plan import Study, StudyRun, as_options

CPU_SECONDS = "train/cpu_seconds"
ONE_THREAD = "--threads=1"
WRITTEN, SCORES = "generated", "scores.json"  # in the folder of a run: texts, and what they score


class Stage(NamedTuple):
    """A process that a run still needs."""

    doing: str
    arguments: list[str]  # of `python -m models`
    told: str  # of a run that lacks it


def stages_to_do(study: Study, run: StudyRun) -> Iterator[Stage]:
    """One after the other: what is next is looked up when the one before is done."""
    return iter(()) if run.kept else _missing_stages(study, run)


def _missing_stages(study: Study, run: StudyRun) -> Iterator[Stage]:
    if not has_ended(run):
        begun = any(checkpoint_path(run.folder, name).exists() for name in (LAST, PREVIOUS))
        resume, done = ["--resume"] if begun else [], len(epochs(run, "dev/bound"))
        told = f"{done} of {run.config.training.epochs} epochs" if done else "not started"
        yield Stage("training", ["train", *run.options, f"--run={run.folder}", *resume], told)
    if study.evaluate is not None and not _is_evaluated(study, run):
        yield Stage("evaluating", evaluation(study, run), "trained, not evaluated")
    if study.score is not None and not _is_current(run.folder / SCORES, run):
        if not _is_current(run.folder / WRITTEN / f"{FILES[-1]}.txt", run):
            yield Stage("writing", writing(study, run), "not scored")
        yield Stage("scoring", scoring(study, run), "not scored")


def unfinished(study: Study, run: StudyRun) -> str | None:
    """Why a run is in no table yet."""
    if different := conflicts(run):
        return f"has other settings than the study, see {', '.join(different)}"
    return next((stage.told for stage in _missing_stages(study, run)), None)


def conflicts(run: StudyRun) -> list[str]:
    """Settings that the run in the folder has, and that are not those of the study."""
    exists = (run.folder / "config.yaml").exists()
    return run.config.conflicts(read_config(run.folder)) if exists else []


def has_ended(run: StudyRun) -> bool:
    """It has all its epochs, or has lost its patience, and saved the last checkpoint after that."""
    if run.kept:
        return True
    settings, last = run.config.training, checkpoint_path(run.folder, LAST)
    trained = len(epochs(run, "dev/bound"))
    if not trained or not last.exists():
        return False
    if trained < settings.epochs and not 0 < settings.patience <= trained - best_epoch(run):
        return False
    try:
        return bool(load_checkpoint(last)["global_step"] == points(run)["dev/bound"][-1][0] + 1)
    except RunError:  # damaged: training goes on from the one before
        return False


def epochs(run: StudyRun, metric: str) -> list[float]:
    """The value of a metric after each epoch so far."""
    return [value for _, value in points(run).get(metric, ())]


def best_epoch(run: StudyRun) -> int:
    """The one, from 1 on, whose checkpoint is kept."""
    bounds = epochs(run, "dev/bound")
    return bounds.index(min(bounds)) + 1


def points(run: StudyRun) -> dict[str, Points]:
    """Steps and values of the metrics that are logged once an epoch."""
    path = run.folder / "metrics.csv"
    return _points(run.folder, path.stat().st_mtime_ns) if path.exists() else {}


@lru_cache(maxsize=256)
def _points(folder: Path, _: int) -> dict[str, Points]:
    """Read again when the file has changed."""
    wanted = ("dev/", CPU_SECONDS)
    return {name: own for name, own in read_points(folder).items() if name.startswith(wanted)}


def nll_metric(runs: Sequence[StudyRun]) -> str:
    """What runs are compared by: the NLL of the dev set or, where some log none, the bound."""
    sampled = all(run.config.training.dev_samples > 1 for run in runs)
    return "dev/nll" if sampled else "dev/bound"


def evaluation(study: Study, run: StudyRun) -> list[str]:
    """Arguments for its evaluation. Without templates there is nothing to control."""
    given = dict(study.evaluate or {})
    if not run.config.objective.latent:
        given.pop("control", None)
    where = [f"--json={evaluation_path(study, run)}", ONE_THREAD]
    return ["evaluate", str(run.folder), *as_options({"show": 0} | given), *where]


def writing(study: Study, run: StudyRun) -> list[str]:
    where = [f"--split={split(study)}", f"--folder={run.folder / WRITTEN}", ONE_THREAD]
    return ["generate", str(run.folder), *as_options(study.generate or {}), *where]


def scoring(study: Study, run: StudyRun) -> list[str]:
    files = {name: str(run.folder / WRITTEN / f"{name}.txt") for name in FILES}
    given = {**(study.score or {}), **files, "json": str(run.folder / SCORES)}
    return ["score", *as_options(given)]


def _is_evaluated(study: Study, run: StudyRun) -> bool:
    """There is an evaluation of the checkpoint that is there now, with as many samples as asked."""
    path = evaluation_path(study, run)
    if not _is_current(path, run):
        return False
    found, asked = read_json(path), study.evaluate or {}
    return all(found.get(name) == asked[name] for name in ("samples", "seed") if name in asked)


def split(study: Study) -> str:
    return str((study.evaluate or {}).get("split", "test"))


def evaluation_path(study: Study, run: StudyRun) -> Path:
    return run.folder / f"{split(study)}.json"


def _is_current(path: Path, run: StudyRun) -> bool:
    """The file is there, and not from before the best checkpoint."""
    if run.kept:
        return path.exists()
    best = checkpoint_path(run.folder, BEST)
    return path.exists() and best.exists() and path.stat().st_mtime >= best.stat().st_mtime
