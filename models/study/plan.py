"""A study's file, and the runs that it asks for.

    config: models/configs/demo.yaml            # a file of settings, which all runs share
    evaluate: {samples: 100, split: test}       # options of `python -m models evaluate`
    generate: {decoding: {beam: 3}}             # options of `generate`
    score: {protocol: e2e}                      # options of `score`, for what `generate` writes
    runs:
      reinforce:                                # a group: runs that differ by their seed alone
        label: REINFORCE                        # what tables call it
        config: models/configs/e2e.yaml         # in place of the file that all share
        seeds: [0, 1, 2]
        settings: {objective: {estimator: reinforce-ms}}
      beta:                                     # as many groups as there are combinations
        seeds: [0]
        grid: {objective.beta.start: [0.1, 0.2], model.num_states: [32, 64]}

Only `runs` must be there. A run is a folder GROUP-SEED; in a grid, values follow the group's name.
Runs whose results were kept (`models/study/kept.py`) are read from a folder beside the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import Any

import yaml

from models.config import RunConfig
from models.errors import DataError, SettingError, meant
from models.files import read_text

KEYS = ("config", "evaluate", "generate", "score", "runs")
GROUP_KEYS = ("label", "config", "seeds", "settings", "grid")
NAME = re.compile(r"[\w.+-]+")  # of a group: part of the name of a folder

Settle = Callable[[Sequence[str]], RunConfig]  # what arguments of `train` mean, or a SettingError


@dataclass(frozen=True, eq=False)
class StudyRun:
    group: str
    label: str  # of the group
    seed: int
    folder: Path
    options: tuple[str, ...]  # of `python -m models train`, the folder left out
    config: RunConfig  # what they mean
    kept: bool = False  # whether the folder holds results alone, of a run that is done

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def log(self) -> Path:
        """What its processes print."""
        return self.folder.with_name(f"{self.name}.log")


@dataclass(frozen=True)
class Study:
    path: Path
    folder: Path
    runs: tuple[StudyRun, ...]
    evaluate: dict[str, Any] | None  # options, if its runs are to be evaluated
    generate: dict[str, Any] | None
    score: dict[str, Any] | None

    @property
    def results(self) -> Path:
        """Where results of its runs are kept: a folder with the name of the file, beside it."""
        return self.path.with_suffix("")

    def groups(self) -> dict[str, list[StudyRun]]:
        """Runs that differ by their seed alone, in the file's order."""
        return {name: list(own) for name, own in groupby(self.runs, lambda run: run.group)}


def read_study(path: Path, folder: Path, settle: Settle) -> Study:
    """The study of a file, its runs inside `folder`; a `DataError` says what is wrong with it."""
    try:
        content = _mapping("a study", yaml.safe_load(read_text(path)), KEYS)
        runs = tuple(_runs(content, folder, path.with_suffix(""), settle))
        evaluate, generate, score = (
            None if content.get(name) is None else _mapping(name, content[name])
            for name in ("evaluate", "generate", "score")
        )
    except (SettingError, RecursionError, yaml.YAMLError) as error:
        raise DataError(path, " ".join(str(error).split())) from error
    study = Study(path, folder, runs, evaluate, generate, score)
    labels = [own[0].label for own in study.groups().values()]
    for what, names in (("labels", labels), ("names", [run.name for run in runs])):
        if len({*names}) < len(names):
            raise DataError(path, f"groups need {what} of their own, not {', '.join(names)}")
    return study


def as_options(settings: dict[str, Any], prefix: str = "--") -> Iterator[str]:
    """Settings in groups as options with dots: `--objective.estimator=rnnlm`."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from as_options(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}={value if isinstance(value, str) else json.dumps(value)}"


def _runs(
    content: dict[str, Any], folder: Path, results: Path, settle: Settle
) -> Iterator[StudyRun]:
    """Each in its folder or, where that is missing, in that of its results, if they were kept."""
    for group, given in _mapping("runs", content.get("runs")).items():
        where = f"runs.{group}"
        about = _mapping(where, given, GROUP_KEYS)
        file = about.get("config", content.get("config"))
        shared = (f"--config={file}",) if file else ()
        settings = tuple(as_options(_mapping(f"{where}.settings", about.get("settings", {}))))
        seeds = about.get("seeds", [0])
        if not _distinct(seeds) or not all(type(seed) is int and seed >= 0 for seed in seeds):
            raise SettingError(f"{where}.seeds: different numbers in a list, not {seeds!r}")
        for values in _combinations(f"{where}.grid", about.get("grid", {})):
            name = "-".join([str(group), *map(str, values.values())])
            if not NAME.fullmatch(name):
                raise SettingError(f"{where}: {name!r} is no name for a folder")
            told = [f"{setting.rpartition('.')[2]} {value}" for setting, value in values.items()]
            label = ", ".join([str(about.get("label", group)), *told])
            for seed in seeds:
                own = (*settings, *as_options(values), f"--training.seed={seed}", "--threads=1")
                options, usual = (*shared, *own), folder / f"{name}-{seed}"
                try:
                    config = settle(options)
                except SettingError as error:
                    raise SettingError(f"{where}: {error}") from error
                kept = (results / usual.name).exists() and not usual.exists()
                place = results / usual.name if kept else usual
                yield StudyRun(name, label, seed, place, options, config, kept)


def _combinations(where: str, grid: Any) -> Iterator[dict[str, Any]]:
    """All ways to choose a value for each setting; one, without any, if there are none."""
    for setting, values in _mapping(where, grid).items():
        if not _distinct(values):
            raise SettingError(f"{where}.{setting}: different values in a list, not {values!r}")
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _distinct(values: Any) -> bool:
    return isinstance(values, list) and 0 < len(values) == len({*map(str, values)})


def _mapping(where: str, given: Any, known: Iterable[str] | None = None) -> dict[str, Any]:
    if not isinstance(given, dict) or (not given and where in ("a study", "runs")):
        raise SettingError(f"{where} has names with values, not {given!r}")
    for name in given:
        if known is not None and name not in known:
            raise SettingError(f"{where} has no {name!r}{meant(str(name), known)}")
    return given
