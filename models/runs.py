"""Runs that were trained: their settings, words and model, from a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.config import RunConfig
from models.data.corpus import Corpus
from models.data.open import open_corpus
from models.data.sources import SourceVocabulary
from models.data.tasks import corpus_vocabulary
from models.data.vocabulary import Vocabulary
from models.errors import RunError
from models.template_vae import TemplateVAE, build_model
from models.training.checkpoints import checkpoint_path, load_checkpoint
from models.training.module import RUN_KEY

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
    try:
        return _restore(saved, run, checkpoint)
    except (KeyError, TypeError, RuntimeError) as error:
        raise RunError(f"{path} is of another version of these models; train it again") from error


def _restore(saved: dict[str, Any], run: Path, checkpoint: str) -> TrainedRun:
    config = RunConfig.from_dict(saved[RUN_KEY]["config"])
    vocabulary = SourceVocabulary(*(Vocabulary(saved[RUN_KEY][part]) for part in ("words", "keys")))
    model = build_model(config, vocabulary)
    state = {k.removeprefix(PREFIX): v for k, v in saved["state_dict"].items()}
    model.load_state_dict(state)
    casing, step = saved[RUN_KEY]["casing"], saved["global_step"]
    return TrainedRun(config, vocabulary, casing, model.eval(), step, run, checkpoint)
