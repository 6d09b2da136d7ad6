"""What is wrong with a file, and where."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """A file that cannot be read as what it should be; the message names file and line."""

    def __init__(self, path: Path | str, message: str, line: int | None = None) -> None:
        where = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {message}")


class DownloadError(RuntimeError):
    """A release that could not be had; the message says how to get it by hand."""
