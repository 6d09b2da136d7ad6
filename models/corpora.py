"""Corpora by name: prepared from files or a download, and opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from models.data.corpus import Corpus, load_corpus, save_corpus
from models.data.download import COCO, E2E, download
from models.data.readers import coco_corpus, e2e_corpus, text_corpus
from models.errors import DataError
from models.restaurants.corpus import synthetic_corpus

CACHE = Path("runs/data")
READERS: dict[str, Callable[[Path], Corpus]] = {
    "e2e": e2e_corpus,
    "coco": coco_corpus,
    "text": text_corpus,
}
RELEASES = {"e2e": E2E, "coco": COCO}  # what can be downloaded


def cache_directory(name: str, directory: str | Path | None = None) -> Path:
    return Path(directory) if directory is not None else CACHE / name


def open_corpus(name: str, directory: str | Path | None = None) -> Corpus:
    """The built-in corpus, or one that `python -m models data` has prepared."""
    if name == "synthetic":
        return synthetic_corpus()
    folder = cache_directory(name, directory)
    if not folder.is_dir():
        ways = "--from or --download" if name in RELEASES else "--from"
        advice = f"first run `python -m models data {name}` with {ways}"
        raise DataError(folder, f"no such folder; {advice}")
    return load_corpus(folder)


def prepare(name: str, source: Path | None, target: Path) -> Corpus:
    """Reads a corpus from `source`, or downloads its release, and saves it in `target`.

    A downloaded release is kept, in a directory inside `target`.
    """
    if source is None:
        source = target / "release"
        download(RELEASES[name], source)
    corpus = READERS[name](source)
    for split, examples in corpus.splits.items():
        if not examples:
            raise DataError(source, f"there is no sentence for the {split} split")
    save_corpus(corpus, target)
    return corpus
