"""From the files of a release to a corpus that can be opened by its directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from models.data.cache import save_corpus
from models.data.coco import coco_corpus
from models.data.corpus import Corpus
from models.data.download import download_coco, download_e2e
from models.data.e2e import e2e_corpus
from models.data.errors import DataError

READERS: dict[str, Callable[[Path], Corpus]] = {"e2e": e2e_corpus, "coco": coco_corpus}
DOWNLOADS: dict[str, Callable[[Path], None]] = {"e2e": download_e2e, "coco": download_coco}


def prepare(name: str, source: Path | None, download: bool, target: Path) -> Corpus:
    """Reads a release from the directory `source`, or downloads it, and saves it in `target`.

    A downloaded release is kept, in a directory inside `target`.
    """
    if name not in READERS:
        raise ValueError(f"no corpus {name!r}; there are {', '.join(READERS)}")
    if download == (source is not None):
        raise ValueError("either a directory to read from or a download, and not both")
    if source is None:
        source = target / "release"
        DOWNLOADS[name](source)
    corpus = READERS[name](source)
    for split, examples in corpus.splits.items():
        if not examples:
            raise DataError(source, f"there is no sentence for the {split} split")
    save_corpus(corpus, target)
    return corpus
