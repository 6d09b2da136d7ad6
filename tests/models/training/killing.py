"""Runs that die at a given moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning
import pytest

from models.config import RunConfig
from models.data.corpus import Corpus
from models.training import fit as module
from models.training.fit import fit
from tests.models.training.conftest import EPOCHS, STEPS

CALLS = {
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


class Killed(BaseException):
    """No `Exception`, which somebody might handle."""


class Bomb(lightning.Callback):
    """Goes off at the n-th call of a hook, before other callbacks hear of it or after them."""

    def __init__(self, hook: str, n: int, first: bool = False) -> None:
        self.left, self.first = n, first
        setattr(self, hook, self._tick)

    def _tick(self, *_: Any, **__: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed

    def among(self, callbacks: list[lightning.Callback]) -> list[lightning.Callback]:
        return [self, *callbacks] if self.first else [*callbacks, self]


def survives(
    bomb: Bomb, config: RunConfig, corpus: Corpus, run: Path, *, resume: bool = False
) -> bool:
    """Train with the bomb; did it come to the end?"""
    usual = module._callbacks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_callbacks", lambda *given: bomb.among(usual(*given)))
        try:
            fit(config, corpus, run, resume)
        except Killed:
            return False
    return True
