"""Checkpoints that a kill cannot spoil, of plain types only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO

from models.files import replacing
from models.runs import BEST, LAST, checkpoint_path, load_checkpoint


class AtomicCheckpoints(TorchCheckpointIO):
    """Writes beside the target and renames: whenever it is killed, one whole file is there."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None
    ) -> None:
        with replacing(Path(path)) as unfinished:
            torch.save(checkpoint, unfinished)

    def load_checkpoint(self, path: str | Path, *_: Any, **__: Any) -> dict[str, Any]:
        return load_checkpoint(Path(path))


class SaveLast(lightning.Callback):
    """Keeps the latest state, to resume from: every few steps, at each epoch's start, at the end.

    It saves before a step: all that belongs to earlier steps, validation and logs too, is done.
    """

    def __init__(self, run: Path, every: int) -> None:
        self.path, self.every = checkpoint_path(run, LAST), every

    def on_train_batch_start(
        self, trainer: lightning.Trainer, module: Any, batch: Any, index: int
    ) -> None:
        if trainer.global_step and (index == 0 or trainer.global_step % self.every == 0):
            self._save(trainer)

    def on_train_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        self._save(trainer)

    def _save(self, trainer: lightning.Trainer) -> None:
        trainer.save_checkpoint(self.path, weights_only=False)


class SaveBest(ModelCheckpoint):
    """Keeps the state with the best dev set; a run knows its best after its folder was moved."""

    __qualname__ = ModelCheckpoint.__qualname__  # the name of its state in a checkpoint

    def __init__(self, run: Path) -> None:
        self.path = checkpoint_path(run, BEST)
        super().__init__(
            self.path.parent,
            filename=BEST,
            monitor="dev/bound",
            save_top_k=1,
            enable_version_counter=False,
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        path, scores = str(self.path.resolve()), state_dict["best_k_models"].values()
        here = {
            "dirpath": self.dirpath,
            "best_model_path": path,
            "kth_best_model_path": path,
            "best_k_models": dict(zip([path], scores, strict=False)),  # one, or none yet
        }
        super().load_state_dict({**state_dict, **here})
