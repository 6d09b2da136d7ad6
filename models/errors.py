"""What can go wrong, in words for the user."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class SettingError(ValueError):
    """A setting that makes no sense."""


class RunError(ValueError):
    """A run folder that does not fit what is asked."""


class DataError(ValueError):
    """A file that cannot be read as what it should be; the message names file and line."""

    def __init__(self, path: Path | str, message: str, line: int | None = None) -> None:
        where = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {message}")


class DownloadError(RuntimeError):
    """A release that could not be had; the message says how to get it by hand."""


class TrainingDivergedError(RuntimeError):
    """The loss is no number any more; the message says what to do."""

    def __init__(self, step: int, loss: float, gradient_norm: float) -> None:
        super().__init__(
            f"training diverged at step {step}: loss {loss}, gradient norm {gradient_norm}. Start "
            "a new run with a smaller training.learning_rate or training.clip, a higher "
            "objective.temperature, or --precision 32-true; this one, resumed, would do the same."
        )


class StudyFailedError(RuntimeError):
    """Some runs of a study are not as they should be; the message names them."""


class StoppedError(Exception):
    """A signal has stopped the work; the message says how to go on."""

    def __init__(self, signal: int, done: str, command: str) -> None:
        self.exit_code = 128 + signal  # as the shell has it
        super().__init__(f"stopped after {done}; go on with `python -m models {command}`")


class TrainingStoppedError(StoppedError):
    """A signal has stopped the training."""

    def __init__(self, signal: int, step: int, run: Path) -> None:
        super().__init__(signal, f"{step} steps, which are saved", f"train --resume --run {run}")


def meant(given: str, known: Iterable[str]) -> str:
    """A question after the most similar of what is known, if one is."""
    close = get_close_matches(given, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""
