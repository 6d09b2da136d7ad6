"""Runs: a folder with settings, a log and checkpoints, and the model that a checkpoint holds."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import yaml

from models.config import RunConfig
from models.corpora import open_corpus
from models.data.corpus import Corpus
from models.data.sources import SourceVocabulary
from models.data.tables import values_by_key
from models.data.tasks import corpus_vocabulary
from models.data.vocabulary import Vocabulary
from models.errors import DataError, RunError
from models.files import at_line, csv_rows, read_text, telling
from models.vae.template_vae import TemplateVAE, build_model
from structdist import __version__

Watch = Callable[[Sequence[Any], str], Iterable[Any]]  # shows the way through what takes long

BEST, LAST, PREVIOUS = "best", "last", "previous"  # checkpoints; the one before the last
COLUMNS = ("step", "epoch", "metric", "value")  # of a log
RUN_KEY = "structdist_run"  # where a checkpoint keeps its settings, vocabulary and version
PREFIX = "model."  # of the model's parameters in a checkpoint


@dataclass(frozen=True)
class TrainedRun:
    config: RunConfig
    vocabulary: SourceVocabulary
    casing: dict[str, str]  # of words that are not written in lower case
    model: TemplateVAE  # with dropout off
    step: int
    folder: Path
    checkpoint: str
    saved_values: dict[str, list[str]] | None = None  # earlier versions did not save them

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """The values that each key has in the tables of training, the most frequent first."""
        if self.saved_values is not None:
            return self.saved_values
        return values_by_key(example.table for example in self.corpus().splits["train"])

    def corpus(self) -> Corpus:
        """What it was trained on; an error if that has changed since."""
        corpus = open_corpus(self.config.data.corpus, self.config.data.directory)
        if corpus_vocabulary(corpus) != self.vocabulary:
            raise RunError(f"the corpus {corpus.name} is not the one that this run was trained on")
        return corpus


def load_run(run: Path, checkpoint: str) -> TrainedRun:
    path = checkpoint_path(run, checkpoint)
    if not path.exists():
        raise RunError(f"{path} does not exist; train with `python -m models train --run {run}`")
    saved = load_checkpoint(path)
    with written_by_us(path, saved) as about:
        config = RunConfig.from_dict(about["config"])
        vocabulary = SourceVocabulary(Vocabulary(about["words"]), Vocabulary(about["keys"]))
        model = build_model(config, vocabulary)
        model.load_state_dict({k.removeprefix(PREFIX): v for k, v in saved["state_dict"].items()})
        casing, step, values = about["casing"], saved["global_step"], about.get("values")
    return TrainedRun(config, vocabulary, casing, model.eval(), step, run, checkpoint, values)


def unwatched(values: Sequence[Any], what: str) -> Iterable[Any]:
    """Shows nothing."""
    return values


def checkpoint_path(run: Path, name: str) -> Path:
    return run / "checkpoints" / f"{name}.ckpt"


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint on the CPU, read without running any code from the file.

    Each part of it has a checksum, which torch writes and does not look at. A `RunError` where one
    does not fit, or where the file is anything else than a checkpoint.
    """
    try:
        with telling(path, "read"), zipfile.ZipFile(path) as parts:
            if sum(part.file_size for part in parts.infolist()) > path.stat().st_size:
                raise zipfile.BadZipFile("parts larger than the file")
            if damaged := parts.testzip():
                raise zipfile.BadZipFile(f"the checksum of {damaged} does not fit")
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(loaded, dict):
            raise TypeError(f"holds no state, but {type(loaded).__name__}")
        return loaded
    except DataError as error:
        raise RunError(f"{error}; use a copy, or the run's other checkpoint") from error
    except pickle.UnpicklingError as error:
        problem = "holds more than numbers and text, perhaps code, and is not opened"
        raise RunError(f"{path} {problem}: take one from whom you trust") from error
    except Exception as error:  # damage shows in many ways, all of them the file's fault
        problem = f"is damaged, or no checkpoint ({' '.join(str(error).split())})"
        raise RunError(f"{path} {problem}; use a copy, or the run's other checkpoint") from error


@contextmanager
def written_by_us(path: Path, saved: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a checkpoint tells of its run; a `RunError` where this version cannot use it."""
    about = saved.get(RUN_KEY, {})
    try:
        yield about
    except (AttributeError, KeyError, TypeError, RuntimeError, ValueError) as error:
        version = about.get("version") if isinstance(about, dict) else None
        raise RunError(
            f"{path} was written by {version or 'an unnamed version'} of structdist, "
            f"and this is {__version__}: train it again, or use that version"
        ) from error


def read_config(run: Path) -> RunConfig:
    """The settings that a run was started with; a `RunError` says what is wrong with them."""
    path = run / "config.yaml"
    if not path.is_file():
        raise RunError(f"{run} is not the folder of a run: no {path.name} can be read")
    try:
        return RunConfig.from_dict(yaml.safe_load(read_text(path)))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        advice = "put it right, or delete it: `train --resume` takes them from the checkpoint"
        problem = f"holds no settings of a run: {' '.join(str(error).split())}"
        raise RunError(f"{path} {problem}; {advice}") from error


def read_metrics(path: Path) -> list[dict[str, str]]:
    """Whole rows of a log; one that a kill cut short is left out."""
    if not path.is_file():
        raise RunError(f"{path.parent} is not the folder of a run: no {path.name} can be read")
    try:
        text, rows = read_text(path), []
        for line, cells in csv_rows(path, text[: text.rfind("\n") + 1], COLUMNS):
            rows.append(dict(zip(COLUMNS, cells, strict=True)))
            with at_line(path, line):
                int(cells[0]), float(cells[-1])
        return rows
    except ValueError as error:
        raise RunError(
            f"{error}; put the line right, or a copy of the file in its place"
        ) from error
