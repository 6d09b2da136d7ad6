"""Runs that were trained: their settings, words and model, from a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from models.config import RunConfig
from models.data.corpus import Corpus
from models.data.open import open_corpus
from models.data.vocabulary import Vocabulary
from models.errors import RunError
from models.estimators import build_estimator
from models.template_vae import TemplateVAE
from models.training.checkpoints import checkpoint_path, load_checkpoint
from models.training.module import RUN_KEY

PREFIX = "model."  # of the model's parameters in a checkpoint


@dataclass(frozen=True)
class TrainedRun:
    config: RunConfig
    vocabulary: Vocabulary
    model: TemplateVAE  # with dropout off
    step: int

    def corpus(self) -> Corpus:
        """What it was trained on; an error if that has changed since."""
        corpus = open_corpus(self.config.data.corpus, self.config.data.directory)
        if corpus.vocabulary.words != self.vocabulary.words:
            raise RunError(f"the corpus {corpus.name} is not the one that this run was trained on")
        return corpus


def load_run(run: Path, checkpoint: str) -> TrainedRun:
    path = checkpoint_path(run, checkpoint)
    if not path.exists():
        raise RunError(f"{path} does not exist; train with `python -m models train --run {run}`")
    saved = load_checkpoint(path)
    config = RunConfig.from_dict(saved[RUN_KEY]["config"])
    vocabulary = Vocabulary(saved[RUN_KEY]["words"])
    model = TemplateVAE(config.model, len(vocabulary), build_estimator(config.objective).latent)
    state = {k.removeprefix(PREFIX): v for k, v in saved["state_dict"].items()}
    model.load_state_dict(state)
    return TrainedRun(config, vocabulary, model.eval(), saved["global_step"])
