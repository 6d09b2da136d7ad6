"""A log one can read with anything: `metrics.csv`."""

from __future__ import annotations

import csv
from argparse import Namespace
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

from models.files import replacing
from models.runs import read_metrics

COLUMNS = ("step", "epoch", "metric", "value")


class MetricsFile(Logger):
    """One row per number, written at once. A resumed run goes on in the same file.

    Rows of steps after the resumed one, which will be run again, are taken out.
    """

    def __init__(self, path: Path, resumed_step: int | None = None) -> None:
        super().__init__()
        self.path = path
        self._start(resumed_step)

    @rank_zero_only
    def _start(self, resumed_step: int | None) -> None:
        kept: list[dict[str, str]] = []
        if resumed_step is not None and self.path.exists():
            kept = [row for row in read_metrics(self.path) if int(row["step"]) < resumed_step]
        with replacing(self.path) as unfinished, unfinished.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(kept)

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def version(self) -> str:
        return ""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        metrics = dict(metrics)
        epoch = int(metrics.pop("epoch", 0))
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerows(
                (int(step or 0), epoch, metric, repr(float(value)))
                for metric, value in metrics.items()
            )

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """The run's own `config.yaml` has them."""
