"""What watches a run."""

from __future__ import annotations

import signal
import sys
import threading
from copy import deepcopy
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor

from models.data.batches import Batch
from models.errors import TrainingStoppedError
from models.training.module import VARIANCE, TrainingModule
from models.training.run_files import SaveLast
from models.vae.objective import Objective
from structdist.estimators import log_variance_ratio

GRADIENTS = 10  # drawn to estimate a variance
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class CollapseWarning(lightning.Callback):
    """Warns when the posterior has become constant or uniform."""

    def on_validation_end(self, trainer: lightning.Trainer, module: Any) -> None:
        scores = module.dev_scores
        if scores is not None and scores.collapse and not trainer.sanity_checking:
            rank_zero_warn(f"posterior collapse, {scores.collapse}")


class EpochLines(lightning.Callback):
    """One line per epoch, for logs that are not a terminal."""

    def on_validation_end(self, trainer: lightning.Trainer, module: Any) -> None:
        found = {k: float(v) for k, v in trainer.callback_metrics.items() if k.startswith("dev/")}
        line = "  ".join(f"{name[4:]} {value:.4g}" for name, value in found.items())
        if trainer.is_global_zero:
            print(
                f"epoch {trainer.current_epoch + 1}, step {trainer.global_step}: {line}", flush=True
            )


class StopEarly(EarlyStopping):
    """Stops when the dev set gets no better. Resumed, it goes by the patience it has now."""

    __qualname__ = EarlyStopping.__qualname__  # the name of its state in a checkpoint

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({**state_dict, "patience": self.patience})

    def on_fit_start(self, trainer: lightning.Trainer, module: Any) -> None:
        trainer.should_stop = self.wait_count >= self.patience


class StopOnSignal(lightning.Callback):
    """The first Ctrl-C or SIGTERM saves before the next step and stops; another stops at once.

    All processes stop before the same step, whichever of them was told to.
    """

    def __init__(self, run: Path, save_last: SaveLast) -> None:
        self.run, self.save_last, self.received = run, save_last, 0

    def on_train_start(self, *_: Any) -> None:
        """In place of Lightning's handlers, which puts those from before it back at the end."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, self._receive)

    def _receive(self, received: int, _: Any) -> None:
        self.received = received
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def on_train_batch_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        if not trainer.strategy.reduce_boolean_decision(self.received > 0, all=False):
            return
        if trainer.global_step:
            self.save_last.on_train_end(trainer)
        if not trainer.is_global_zero:
            sys.exit()  # quietly: the first process tells
        raise TrainingStoppedError(self.received or signal.SIGTERM, trainer.global_step, self.run)


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
        was_training = module.model.training
        module.model.eval()
        module.seed_draws(VARIANCE)
        probe, objective = self.probe.to(module.device), deepcopy(module.objective)
        with torch.backends.cudnn.flags(enabled=False):  # it has no gradient in eval mode
            draws = torch.stack(
                [_inference_gradient(module, objective, probe) for _ in range(GRADIENTS)]
            )
        module.model.train(was_training)
        return log_variance_ratio(draws)


def _inference_gradient(module: TrainingModule, objective: Objective, batch: Batch) -> Tensor:
    parameters = list(module.model.inference_network.parameters())  # type: ignore[union-attr]
    loss = objective.loss(module.model, batch, module.knobs())
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])
