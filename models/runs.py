"""Runs: a folder with settings, a log and checkpoints, and the model that a checkpoint holds."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from models.config import RunConfig
from models.corpora import open_corpus
from models.data.corpus import Corpus
from models.data.sources import SourceVocabulary
from models.data.tasks import corpus_vocabulary
from models.data.vocabulary import Vocabulary
from models.errors import RunError, SettingError
from models.vae.template_vae import TemplateVAE, build_model
from structdist import __version__

Watch = Callable[[Sequence[Any], str], Iterable[Any]]  # shows the way through what takes long

BEST, LAST = "best", "last"  # checkpoints
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
    about = saved.get(RUN_KEY, {})
    try:
        config = RunConfig.from_dict(about["config"])
        vocabulary = SourceVocabulary(Vocabulary(about["words"]), Vocabulary(about["keys"]))
        model = build_model(config, vocabulary)
        model.load_state_dict({k.removeprefix(PREFIX): v for k, v in saved["state_dict"].items()})
        casing, step = about["casing"], saved["global_step"]
    except (KeyError, TypeError, RuntimeError, SettingError) as error:
        raise RunError(
            f"{path} was written by {about.get('version', 'an unnamed version')} of structdist, "
            f"and this is {__version__}: train it again, or use that version"
        ) from error
    return TrainedRun(config, vocabulary, casing, model.eval(), step, run, checkpoint)


def unwatched(values: Sequence[Any], what: str) -> Iterable[Any]:
    """Shows nothing."""
    return values


def checkpoint_path(run: Path, name: str) -> Path:
    return run / "checkpoints" / f"{name}.ckpt"


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint on the CPU, read without running any code from the file."""
    loaded: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return loaded


def read_config(run: Path) -> RunConfig:
    """The settings that a run was started with; a `RunError` says what is wrong with them."""
    path = run / "config.yaml"
    try:
        return RunConfig.from_dict(yaml.safe_load(path.read_text()))
    except OSError as error:
        raise RunError(f"{run} is not the folder of a run: no {path.name} can be read") from error
    except (ValueError, yaml.YAMLError) as error:
        raise RunError(f"{path} holds no settings of a run: {error}") from error


def read_metrics(path: Path) -> list[dict[str, str]]:
    """Whole rows of a log; one that a kill cut short is left out."""
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if line.endswith("\n")))
