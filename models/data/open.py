"""Corpora by name."""

from __future__ import annotations

from pathlib import Path

from models.data.cache import load_corpus
from models.data.corpus import Corpus
from models.data.errors import DataError
from models.data.synthetic import synthetic_corpus

CACHE = Path("runs/data")


def cache_directory(name: str, directory: str | Path | None = None) -> Path:
    return Path(directory) if directory is not None else CACHE / name


def open_corpus(name: str, directory: str | Path | None = None) -> Corpus:
    """The built-in corpus, or one that `python -m models data` has prepared."""
    if name == "synthetic":
        return synthetic_corpus()
    folder = cache_directory(name, directory)
    if not folder.is_dir():
        advice = f"first run `python -m models data {name}` with --from or --download"
        raise DataError(folder, f"no such folder; {advice}")
    return load_corpus(folder)
