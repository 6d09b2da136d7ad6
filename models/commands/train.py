"""`python -m models train`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from models.config import (
    DataConfig,
    MachineConfig,
    ModelConfig,
    ObjectiveConfig,
    RunConfig,
    TrainingConfig,
)
from models.data.open import open_corpus
from models.data.tasks import Task
from models.training.fit import fit

USAGE = "train [--config FILE] [options]"
DETAILS = """\
Without arguments: Gumbel-CRF-ST on the built-in corpus. A file of models/configs/ sets many
settings at once, and settings after it on the command line change single ones:
  python -m models train --config models/configs/e2e.yaml --objective.estimator reinforce-ms
Whatever stopped it, the same command with --resume goes on where the last checkpoint was made."""

TASK_HELP = (
    "`text`: model sentences alone; `data2text`: write them from tables (e2e, synthetic); "
    "`paraphrase`: write them from the content words of others like them (coco); "
    "`paraphrase-unpaired`: from their own, without pairs, as in the paper."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--config", action="config", help="A YAML file of settings.")
    parser.add_argument(
        "--run", type=str | None, help="Folder; default runs/CORPUS-TASK-ESTIMATOR."
    )
    parser.add_argument("--resume", action="store_true", help="Go on with the run in that folder.")
    parser.add_argument("--task", type=Task, default="text", help=TASK_HELP)
    parser.add_argument("--data", type=DataConfig, default=DataConfig())
    parser.add_argument("--model", type=ModelConfig, default=ModelConfig())
    parser.add_argument("--objective", type=ObjectiveConfig, default=ObjectiveConfig())
    parser.add_argument("--training", type=TrainingConfig, default=TrainingConfig())
    parser.add_class_arguments(MachineConfig)


def run(options: Any) -> None:
    machine = MachineConfig(*(options[field.name] for field in fields(MachineConfig)))
    parts = options.data, options.model, options.objective, options.training
    config = RunConfig(*parts, machine, options.task)
    task = [] if config.task == "text" else [config.task]
    name = "-".join([config.data.corpus, *task, config.objective.estimator])
    folder = Path(options.run or f"runs/{name}")
    fit(config, open_corpus(config.data.corpus, config.data.directory), folder, options.resume)
    print(f"done: {folder}; next: python -m models evaluate {folder}")
