"""`python -m models data`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console
from rich.table import Table

from models.data.corpus import Corpus
from models.data.errors import DataError
from models.data.open import cache_directory, open_corpus
from models.data.prepare import READERS, prepare

USAGE = "data CORPUS [--from DIR | --download] [--to DIR]"
DETAILS = """\
  python -m models data e2e --from DIR     read the E2E release in DIR (CSV files, plain or .gz)
  python -m models data e2e --download     fetch the official release first
  python -m models data coco --from DIR    read COCO captions in DIR (JSON files, plain or .gz)
  python -m models data synthetic          the built-in restaurant grammar; nothing to prepare"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("corpus", choices=["synthetic", *READERS], help="Which corpus.")
    parser.add_argument("--from", type=str | None, help="Folder with the files of the release.")
    parser.add_argument("--download", action="store_true", help="Fetch the official release.")
    parser.add_argument("--to", type=str | None, help="Prepared corpus; default runs/data/CORPUS.")


def run(options: Any) -> None:
    source = options["from"]
    if options.corpus == "synthetic":
        corpus = open_corpus("synthetic")
    else:
        if options.download == (source is not None):
            raise DataError(options.corpus, "give either --from DIR or --download")
        target = cache_directory(options.corpus, options.to)
        corpus = prepare(options.corpus, source and Path(source), options.download, target)
        print(f"prepared: {target}")
    _show(corpus)


def _show(corpus: Corpus, examples: int = 3) -> None:
    table = Table("split", "sentences", "words", "mean length", "unknown words")
    known = set(corpus.vocabulary.words)
    for split, sentences in corpus.splits.items():
        words = [word for example in sentences for word in example.words]
        unknown = sum(word not in known for word in words) / len(words)
        mean = len(words) / len(sentences)
        table.add_row(
            split, f"{len(sentences):,}", f"{len(words):,}", f"{mean:.1f}", f"{unknown:.2%}"
        )
    console = Console()
    console.print(table)
    console.print(f"vocabulary: {len(corpus.vocabulary):,} types. The first sentences:")
    for example in corpus.splits["train"][:examples]:
        console.print("  " + " ".join(example.words), highlight=False, markup=False)
