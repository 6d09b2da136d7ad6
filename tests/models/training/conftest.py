"""A run so small that it takes less than a second: three epochs of four steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.config import (
    DataConfig,
    MachineConfig,
    ModelConfig,
    ObjectiveConfig,
    RunConfig,
    TrainingConfig,
)
from models.data.corpus import Corpus
from models.restaurants.corpus import synthetic_corpus
from models.runs import checkpoint_path, load_checkpoint, read_metrics
from models.training import callbacks

EPOCHS, STEPS = 3, 4

TINY = RunConfig(
    DataConfig(batch_size=15),
    ModelConfig(num_states=3, hidden_size=8),
    ObjectiveConfig(),
    TrainingConfig(epochs=EPOCHS, checkpoint_every=1, variance_every=2, patience=5),
    MachineConfig("cpu", threads=1),
)


def tiny(**changes: dict[str, Any]) -> RunConfig:
    """The tiny run with other settings: `tiny(training={"epochs": 1})`."""
    parts = {part: replace(getattr(TINY, part), **values) for part, values in changes.items()}
    return replace(TINY, **parts)


@pytest.fixture(scope="session", autouse=True)
def _few_gradients():
    """Enough for a variance; most of the time would go there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks, "GRADIENTS", 2)
        yield


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return synthetic_corpus(num_train=50, num_dev=10, num_test=1)


def logged(run: Path, metric: str) -> list[float]:
    rows = read_metrics(run / "metrics.csv")
    return [float(row["value"]) for row in rows if row["metric"] == metric]


CPU_SECONDS = "train/cpu_seconds"


def outcome(run: Path) -> dict[str, Any]:
    """All that a run leaves, but for the time it took: log, weights, the optimizer's state."""
    last, best = (load_checkpoint(checkpoint_path(run, name)) for name in ("last", "best"))
    return {
        "metrics": [r for r in read_metrics(run / "metrics.csv") if r["metric"] != CPU_SECONDS],
        "step": last["global_step"],
        "weights": _plain(last["state_dict"]),
        "optimizer": _plain(last["optimizer_states"]),
        "best weights": _plain(best["state_dict"]),
        "best step": best["global_step"],
    }


def _plain(value: Any) -> Any:
    """Numbers in place of tensors, to be compared exactly."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value
