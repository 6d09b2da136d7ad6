"""Studies of runs that were never trained: folders as training would leave them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import yaml

from models.commands.train import settings_reader
from models.files import write_json, write_text
from models.runs import BEST, LAST, checkpoint_path
from models.study.plan import Study, StudyRun, read_study
from models.study.progress import evaluation_path
from models.training.run_files import MetricsFile

STEPS = 4  # of an epoch
SETTINGS = {"training": {"epochs": 4, "dev_samples": 2}}
RUNS = {
    "rnnlm": {"label": "RNNLM", "settings": SETTINGS | {"objective": {"estimator": "rnnlm"}}},
    "gumbel": {"label": "Gumbel", "seeds": [0, 1], "settings": SETTINGS},
}
EVALUATE = {"samples": 3}


def study(folder: Path, **content: Any) -> Study:
    """Of a file in `folder`; its runs are in a folder inside."""
    path = folder / "study.yaml"
    asked = {"evaluate": EVALUATE, "runs": RUNS} | content
    path.write_text(yaml.safe_dump(asked, sort_keys=False))
    return read_study(path, folder / "runs", settings_reader())


def train(
    run: StudyRun, nlls: Sequence[float], minutes: float = 1.0, seen: int | None = None
) -> None:
    """An epoch for each NLL, of so many CPU minutes; the last checkpoint is of step `seen`."""
    write_text(run.folder / "config.yaml", yaml.safe_dump(run.config.as_dict()))
    log = MetricsFile(run.folder / "metrics.csv")
    for epoch, nll in enumerate(nlls, 1):
        measured = {"dev/bound": nll + 1, "dev/nll": nll, "train/cpu_seconds": 60 * minutes * epoch}
        if run.config.objective.latent:
            measured |= {"dev/word_nats": nll - 2, "dev/state_nats": 5.0, "dev/entropy": 2.0}
        log.log_metrics(measured, STEPS * epoch - 1)
    for name in (BEST, LAST):
        path = checkpoint_path(run.folder, name)
        path.parent.mkdir(exist_ok=True)
        step = STEPS * len(nlls) if seen is None else seen
        torch.save({"global_step": step}, path)
        os.utime(path, (1, 1))  # long ago: what comes after it is newer


def evaluate(study: Study, run: StudyRun, nll: float, **changes: Any) -> None:
    """As `python -m models evaluate` would, on 7 sentences."""
    latent = run.config.objective.latent
    own = {"neg_elbo": nll + 1, "entropy": 2.5, "states_in_use": 9} if latent else {}
    scores = dict.fromkeys(("neg_elbo", "entropy", "states_in_use")) | own
    found = {"scores": {"nll": nll, "ppl": nll / 10} | scores, "recovery": None, "control": None}
    write_json(evaluation_path(study, run), found | {"samples": 3, "sentences": 7} | changes)


def by_name(study: Study) -> dict[str, StudyRun]:
    return {run.name: run for run in study.runs}
