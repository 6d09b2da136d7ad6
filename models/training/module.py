"""What Lightning calls at each step."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import Any

import lightning
import torch
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor, nn

from models.config import Knobs, RunConfig
from models.data.batches import Batch
from models.data.sources import SourceVocabulary
from models.errors import TrainingDivergedError
from models.runs import RUN_KEY
from models.vae.likelihood import Tally
from models.vae.objective import build_objective
from models.vae.template_vae import build_model
from structdist import __version__

TRAINING, VALIDATION, VARIANCE = range(3)  # what random numbers are drawn for
LOG_EVERY = 10  # steps
HOPELESS = 1e12  # a loss, or gradient norm, from which no run comes back
CPU_SECONDS_KEY = "structdist_cpu_seconds"
OBJECTIVE_KEY = "structdist_objective"  # where it keeps what the estimator has learnt


class TrainingModule(lightning.LightningModule):
    """Trains a template VAE with the estimator of its configuration.

    Every step draws from a seed made of the run's seed and the step's number: a run that was
    stopped goes on with the draws it would have made. What is known `about_sentences`, beside their
    words, is saved with the model for those who write with it.
    """

    def __init__(
        self,
        config: RunConfig,
        vocabulary: SourceVocabulary,
        about_sentences: dict[str, Any],
        steps_per_epoch: int,
    ) -> None:
        super().__init__()
        self.config, self.vocabulary, self.about_sentences = config, vocabulary, about_sentences
        self.steps_per_epoch = steps_per_epoch
        self.objective = build_objective(config.objective)
        self.model = build_model(config, vocabulary)
        self._loss = self._gradient_norm = torch.zeros(())
        self._knobs = Knobs()
        self._dev = Tally()
        self.cpu_seconds = self._step_began = 0.0  # in steps of training, by this process

    def knobs(self) -> Knobs:
        """The values that the schedules have at this step."""
        return self.config.objective.knobs(self.global_step / self.steps_per_epoch)

    def seed_draws(self, *purpose: int) -> None:
        """Make the coming draws a function of seed, step and purpose."""
        mixed = 0
        for number in (self.config.training.seed, self.global_step, *purpose):
            mixed = (mixed * 1_000_003 + number + 0x9E3779B9) % 2**63
        torch.manual_seed(mixed)

    def record(self, metrics: dict[str, Any]) -> None:
        """Log at the last step done. (Lightning decides by a count that is off after a resume.)"""
        for logger in self.loggers:
            logger.log_metrics({**metrics, "epoch": self.current_epoch}, self.global_step - 1)

    def on_train_batch_start(self, *_: Any) -> None:
        self._step_began = time.process_time()

    def training_step(self, batch: Batch, index: int) -> Tensor:
        self.seed_draws(TRAINING, self.global_rank)
        self._knobs, settings = self.knobs(), self.config.training
        if settings.final_learning_rate is not None:  # by the step: a resumed run needs no state
            way = self.global_step / max(self.steps_per_epoch * settings.epochs - 1, 1)
            rate = (1 - way) * settings.learning_rate + way * settings.final_learning_rate
            self.trainer.optimizers[0].param_groups[0]["lr"] = rate
        try:
            loss = self.objective.loss(self.model, batch, self._knobs)
        except FloatingPointError as error:
            norm = float(self._gradient_norm)
            raise TrainingDivergedError(self.global_step, math.nan, norm) from error
        self._loss = loss.detach()
        self.log("train/loss", self._loss, prog_bar=True, logger=False)
        return loss

    def configure_gradient_clipping(self, optimizer: Any, *_: Any, **__: Any) -> None:
        """Clip; a loss or gradient beyond all bounds stops the run, on all processes alike."""
        norm = nn.utils.clip_grad_norm_(self.parameters(), self.config.training.clip)
        scaled = self.config.machine.precision == "16-mixed"  # its scaler skips such steps
        if not scaled and not (norm < HOPELESS and self._loss.abs() < HOPELESS):  # NaN included
            raise TrainingDivergedError(self.global_step, float(self._loss), float(norm))
        self._gradient_norm = norm

    def on_train_batch_end(self, *_: Any) -> None:
        self.cpu_seconds += time.process_time() - self._step_began
        if self.global_step % LOG_EVERY == 0:
            measured = {"train/loss": self._loss, "train/gradient_norm": self._gradient_norm}
            self.record(measured | {f"knobs/{k}": v for k, v in self._knobs.values.items()})

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=self.config.training.learning_rate)

    def on_validation_epoch_start(self) -> None:
        self.seed_draws(VALIDATION)
        self._dev = Tally()

    def validation_step(self, batch: Batch, index: int) -> None:
        self._dev.add(self.model, batch, self.config.training.dev_samples)

    def on_validation_epoch_end(self) -> None:
        """Every process looks at the whole dev set, with the same draws."""
        scores = self._dev.scores()
        if scores.collapse:
            rank_zero_warn(f"posterior collapse, {scores.collapse}")
        found = {"bound": scores.bound, **asdict(scores)}
        if self.config.training.dev_samples == 1:
            del found["nll"]  # no better than the bound
        shown = {f"dev/{k}": float(v) for k, v in found.items() if v is not None}
        self.record(shown | {"train/cpu_seconds": self.cpu_seconds})
        self.log_dict(shown, logger=False, sync_dist=True)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint[CPU_SECONDS_KEY] = self.cpu_seconds
        checkpoint[OBJECTIVE_KEY] = self.objective.state_dict()
        checkpoint[RUN_KEY] = {
            "config": self.config.as_dict(),
            "words": self.vocabulary.words.real_words,
            "keys": self.vocabulary.keys.real_words,
            **self.about_sentences,
            "version": __version__,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.objective.load_state_dict(checkpoint.get(OBJECTIVE_KEY, {}))
        self.cpu_seconds = checkpoint.get(CPU_SECONDS_KEY, 0.0)
