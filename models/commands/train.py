"""`python -m models train`."""

from __future__ import annotations

from argparse import ArgumentParser as PlainParser
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from models.commands import Parser
from models.config import MachineConfig, RunConfig
from models.data.sources import Task
from models.errors import RunError

USAGE = "train [--config FILE] [options]"
DETAILS = """\
Without arguments: Gumbel-CRF-ST on the built-in corpus. A file of models/configs/ sets many
settings at once, and settings after it on the command line change single ones:
  python -m models train --config models/configs/e2e.yaml --objective.estimator reinforce-ms
Whatever stopped it, a run goes on where its last checkpoint was made, its settings known:
  python -m models train --resume --run runs/RUN"""

TASK_HELP = (
    "`text`: model sentences alone; `data2text`: write them from tables (e2e, synthetic); "
    "`paraphrase`: write them from the content words of others like them (coco); "
    "`paraphrase-unpaired`: from their own, without pairs, as in the paper."
)
PARTS = [field for field in fields(RunConfig) if field.name not in ("machine", "task")]


def add_arguments(parser: Parser) -> None:
    add, default = parser.add_argument, _defaults(parser.given)
    add("--config", action="config", help="A YAML file of settings.")
    add("--run", type=str | None, help="Folder; default runs/CORPUS-TASK-ESTIMATOR.")
    add("--resume", action="store_true", help="Go on with the run in that folder.")
    add("--task", type=Task, default=default.task, help=TASK_HELP)
    for part in PARTS:
        value = getattr(default, part.name)
        add(f"--{part.name}", type=type(value), default=value)
    parser.add_class_arguments(MachineConfig)
    parser.set_defaults(asdict(default.machine))


def _defaults(arguments: Sequence[str]) -> RunConfig:
    """The settings of the run that is to go on, or those of a new one."""
    plain = PlainParser(add_help=False, allow_abbrev=False)
    plain.add_argument("--run")
    plain.add_argument("--resume", action="store_true")
    given, _ = plain.parse_known_args(arguments)
    if not given.resume or given.run is None:
        return RunConfig()
    from models.runs import LAST, checkpoint_path, load_run, read_config

    folder = Path(given.run)
    if (folder / "config.yaml").exists():
        return read_config(folder)
    if not checkpoint_path(folder, LAST).exists():
        raise RunError(f"{folder} holds no run to go on with")
    print(f"{folder / 'config.yaml'} is missing: the settings are those of the checkpoint")
    return load_run(folder, LAST).config


def settings_reader() -> Callable[[Sequence[str]], RunConfig]:
    """A function from arguments to the settings of a new run, or a `SettingError` of one line."""
    parser = Parser(exit_on_error=False)
    add_arguments(parser)
    return lambda arguments: _settings(parser.instantiate(parser.parse_args(arguments)))


def _settings(options: Any) -> RunConfig:
    machine = MachineConfig(*(options[field.name] for field in fields(MachineConfig)))
    parts = {part.name: options[part.name] for part in PARTS}
    return RunConfig(**parts, machine=machine, task=options.task)


def run(options: Any) -> None:
    from models.corpora import open_corpus
    from models.training.fit import fit

    config = _settings(options)
    task = [] if config.task == "text" else [config.task]
    name = "-".join([config.data.corpus, *task, config.objective.estimator])
    folder = Path(options.run or f"runs/{name}")
    fit(config, open_corpus(config.data.corpus, config.data.directory), folder, options.resume)
    print(f"done: {folder}; next: python -m models evaluate {folder}")
