"""What training leaves in the folder of a run: checkpoints and a log that a kill cannot spoil."""

from __future__ import annotations

import csv
import io
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.plugins.io import TorchCheckpointIO
from lightning.pytorch.utilities import rank_zero_only

from models.errors import DataError, RunError
from models.files import telling, write_bytes, write_text
from models.runs import COLUMNS, LAST, PREVIOUS, load_checkpoint, read_metrics


class AtomicCheckpoints(TorchCheckpointIO):
    """Writes whole files or none, and keeps the checkpoint before the last."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None
    ) -> None:
        path, content = Path(path), io.BytesIO()
        torch.save(checkpoint, content)  # to a file, it would not say that the disk is full
        try:
            previous = path.with_stem(PREVIOUS) if path.stem == LAST else None
            write_bytes(path, content.getbuffer(), previous)
        except DataError as error:
            resume = f"python -m models train --resume --run {path.parent.parent}"
            raise RunError(f"{error}; put that right and go on with `{resume}`") from error

    def load_checkpoint(self, path: str | Path, *_: Any, **__: Any) -> dict[str, Any]:
        return load_checkpoint(Path(path))


class MetricsFile(Logger):
    """`metrics.csv`: one row per number, written at once. A resumed run goes on in the same file.

    Rows of steps after the resumed one, which will be run again, are taken out.
    """

    name, version = "metrics", ""

    def __init__(self, path: Path, resumed_step: int | None = None) -> None:
        super().__init__()
        self.path = path
        self._start(resumed_step)

    @rank_zero_only
    def _start(self, resumed_step: int | None) -> None:
        kept: list[dict[str, str]] = []
        if resumed_step is not None:
            if not self.path.exists():
                anew = f"start it anew with the line {','.join(COLUMNS)}"
                raise RunError(f"{self.path} is missing: put it back, or {anew}")
            kept = [row for row in read_metrics(self.path) if int(row["step"]) < resumed_step]
        content = io.StringIO(newline="")
        writer = csv.DictWriter(content, COLUMNS)
        writer.writeheader()
        writer.writerows(kept)
        write_text(self.path, content.getvalue())

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        values = dict(metrics)
        where = int(step or 0), int(values.pop("epoch", 0))
        with telling(self.path, "written"), self.path.open("a", newline="") as file:
            rows = ((*where, metric, repr(float(value))) for metric, value in values.items())
            csv.writer(file).writerows(rows)

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """The run's own `config.yaml` has them."""
