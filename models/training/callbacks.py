"""What watches a run, saves it, and stops it."""

from __future__ import annotations

import signal
import sys
import threading
from copy import deepcopy
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, WeightAveraging
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor

from models.data.batches import Batch
from models.errors import TrainingStoppedError
from models.runs import BEST, LAST, checkpoint_path
from models.training.module import VARIANCE, TrainingModule
from structdist.estimators import log_variance_ratio

GRADIENTS = 10  # drawn to estimate a variance
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class EpochLines(lightning.Callback):
    """One line per epoch, for logs that are not a terminal."""

    def on_validation_end(self, trainer: lightning.Trainer, module: Any) -> None:
        found = {k: float(v) for k, v in trainer.callback_metrics.items() if k.startswith("dev/")}
        line = "  ".join(f"{name[4:]} {value:.4g}" for name, value in found.items())
        where = f"epoch {trainer.current_epoch + 1}, step {trainer.global_step}"
        rank_zero_only(print)(f"{where}: {line}", flush=True)


class StopEarly(EarlyStopping):
    """Stops when the dev set gets no better. Resumed, it goes by the patience it has now."""

    __qualname__ = EarlyStopping.__qualname__  # the name of its state in a checkpoint

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({**state_dict, "patience": self.patience})

    def on_fit_start(self, trainer: lightning.Trainer, module: Any) -> None:
        trainer.should_stop = self.wait_count >= self.patience


class SaveBest(ModelCheckpoint):
    """Keeps the state with the best dev set; a run knows its best after its folder was moved."""

    __qualname__ = ModelCheckpoint.__qualname__  # the name of its state in a checkpoint

    def __init__(self, run: Path) -> None:
        self.path = checkpoint_path(run, BEST)
        one: Any = {"monitor": "dev/bound", "save_top_k": 1, "enable_version_counter": False}
        super().__init__(self.path.parent, filename=BEST, **one)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        path, scores = str(self.path.resolve()), state_dict["best_k_models"].values()
        here = {
            "dirpath": self.dirpath,
            "best_model_path": path,
            "kth_best_model_path": path,
            "best_k_models": dict(zip([path], scores, strict=False)),  # one, or none yet
        }
        super().load_state_dict({**state_dict, **here})


class SaveLast(lightning.Callback):
    """Keeps the latest state, to resume from: every few steps, at each epoch's start, at the end.

    It saves before a step: all that belongs to earlier steps, validation and logs too, is done. So
    it does at the first Ctrl-C or SIGTERM, and stops the run; another stops it at once. All
    processes stop before the same step, whichever of them was told to.
    """

    def __init__(self, run: Path, every: int) -> None:
        self.run, self.every, self.received = run, every, 0

    def on_train_start(self, *_: Any) -> None:
        """In place of Lightning's handlers, which puts those from before it back at the end."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, self._receive)

    def _receive(self, received: int, _: Any) -> None:
        self.received = received
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def on_train_batch_start(
        self, trainer: lightning.Trainer, module: Any, batch: Any, index: int
    ) -> None:
        step = trainer.global_step
        stops = trainer.strategy.reduce_boolean_decision(self.received > 0, all=False)
        if step and (stops or index == 0 or step % self.every == 0):
            self.on_train_end(trainer)
        if stops and not trainer.is_global_zero:
            sys.exit()  # quietly: the first process tells
        if stops:
            raise TrainingStoppedError(self.received or signal.SIGTERM, step, self.run)

    def on_train_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        trainer.save_checkpoint(checkpoint_path(self.run, LAST), weights_only=False)


class AverageWeights(WeightAveraging):
    """Validates and saves a mean of the parameters, over about a share of the steps so far.

    The mean follows the parameters by 1 / (1 + share n) of the way at the n-th step, so that a step
    counts the more the later it was; training itself goes on from the last parameters. It stands
    behind `SaveLast`, whose checkpoint at the end has those, too.
    """

    def __init__(self, share: float) -> None:
        def mean(before: Tensor, now: Tensor, steps: Tensor | int) -> Tensor:
            return before.lerp(now, 1 / (1 + share * int(steps)))

        super().__init__(use_buffers=False, avg_fn=mean)


class GradientVariance(lightning.Callback):
    """Logs the gradient's log variance ratio on a fixed batch (Figure 3B of Fu et al., 2020).

    Of the inference network's gradient over several draws, without dropout.
    """

    def __init__(self, probe: Batch, every: int) -> None:
        self.probe, self.every = probe, every

    def on_train_batch_end(self, trainer: lightning.Trainer, module: Any, *_: Any) -> None:
        if trainer.global_step % self.every == 0:
            module.record({"train/log_variance_ratio": self.measure(module)})

    def measure(self, module: TrainingModule) -> float:
        model, objective = module.model, deepcopy(module.objective)
        probe, was_training = self.probe.to(module.device), model.training
        parameters = list(model.inference_network.parameters())  # type: ignore[union-attr]
        model.eval()
        module.seed_draws(VARIANCE)
        draws = []
        with torch.backends.cudnn.flags(enabled=False):  # it has no gradient in eval mode
            for _ in range(GRADIENTS):
                loss = objective.loss(model, probe, module.knobs())
                gradient = torch.autograd.grad(loss, parameters)
                draws.append(torch.cat([part.flatten() for part in gradient]))
        model.train(was_training)
        return log_variance_ratio(torch.stack(draws))
