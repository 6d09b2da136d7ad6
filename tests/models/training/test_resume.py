"""A run that was killed, at whatever moment, ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import lightning
import pytest

from models.config import RunConfig
from models.training import fit as module
from models.training.fit import RunError, fit
from tests.models.training.conftest import EPOCHS, STEPS, TINY, logged, outcome, tiny

TIMES = {
    "on_train_epoch_start": EPOCHS,
    "on_train_batch_start": EPOCHS * STEPS,
    "on_before_optimizer_step": EPOCHS * STEPS,
    "on_train_batch_end": EPOCHS * STEPS,
    "on_validation_start": EPOCHS,
    "on_validation_batch_end": EPOCHS,
    "on_validation_end": EPOCHS,
    "on_train_epoch_end": EPOCHS,
    "on_train_end": 1,
}
ALL_POINTS = [(hook, n) for hook, times in TIMES.items() for n in range(1, times + 1)]
SOME_POINTS = [
    ("on_train_epoch_start", 2),
    ("on_train_batch_start", 1),
    ("on_train_batch_start", 6),
    ("on_train_batch_start", 9),
    ("on_before_optimizer_step", 4),
    ("on_train_batch_end", 7),
    ("on_train_batch_end", 8),
    ("on_validation_start", 1),
    ("on_validation_batch_end", 2),
    ("on_validation_end", 3),
    ("on_train_epoch_end", 1),
    ("on_train_end", 1),
]


class Killed(BaseException):
    """No `Exception`: nobody is to handle it."""


class Bomb(lightning.Callback):
    """Goes off at the n-th call of a hook."""

    def __init__(self, hook: str, n: int) -> None:
        self.left = n
        setattr(self, hook, self._tick)

    def _tick(self, *_: object) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class Armed:
    """Trains with a bomb among the callbacks, as the first of them or the last."""

    def __init__(self, corpus, monkeypatch) -> None:
        self.corpus, self.monkeypatch = corpus, monkeypatch

    def killed(self, run: Path, bomb: Bomb, config: RunConfig, first: bool, resume: bool) -> bool:
        callbacks = module._callbacks
        with self.monkeypatch.context() as patch:
            armed = (lambda *a: [bomb, *callbacks(*a)]) if first else (lambda *a: [*callbacks(*a), bomb])
            patch.setattr(module, "_callbacks", armed)
            try:
                fit(config, self.corpus, run, resume)
            except Killed:
                return True
        return False
