"""`python -m models data`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.table import Table

from models.commands.options import plain_console
from models.corpora import READERS, RELEASES, cache_directory, open_corpus, prepare
from models.data.corpus import Corpus
from models.errors import DataError

USAGE = "data CORPUS [--from PATH | --download] [--to DIR]"
DETAILS = """\
  python -m models data e2e --from DIR     read the E2E release in DIR (CSV files, plain or .gz)
  python -m models data e2e --download     fetch the official release first
  python -m models data coco --from DIR    read COCO captions in DIR (JSON files, plain or .gz)
  python -m models data text --from FILE   your own text: one sentence a line, tokenised or not
  python -m models data synthetic          the built-in restaurant grammar; nothing to prepare"""


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("corpus", choices=["synthetic", *READERS], help="Which corpus.")
    add("--from", type=str | None, help="Folder with the files of the release, or a text file.")
    add("--download", action="store_true", help="Fetch the official release.")
    add("--to", type=str | None, help="Prepared corpus; default runs/data/CORPUS.")


def run(options: Any) -> None:
    name, source = options.corpus, options["from"]
    if name == "synthetic":
        corpus = open_corpus(name)
        learn = "--task data2text"
    else:
        if options.download and name not in RELEASES:
            raise DataError(name, "is nothing to download: give --from FILE")
        if options.download == (source is not None):
            raise DataError(name, "give either --from DIR or --download")
        target = cache_directory(name, options.to)
        corpus = prepare(name, source and Path(source), target)
        print(f"prepared: {target}")
        learn = f"--data.corpus {name}" + (f" --data.directory {target}" if options.to else "")
    _show(corpus)
    print(f"next: python -m models train {learn}")


def _show(corpus: Corpus, examples: int = 3) -> None:
    table = Table("split", "sentences", "words", "mean length", "unknown words")
    known = set(corpus.vocabulary.words)
    for split, sentences in corpus.splits.items():
        words = [word for example in sentences for word in example.words]
        unknown = sum(word not in known for word in words) / len(words)
        mean = len(words) / len(sentences)
        counts = (f"{len(sentences):,}", f"{len(words):,}")
        table.add_row(split, *counts, f"{mean:.1f}", f"{unknown:.2%}")
    console = plain_console()
    console.print(table)
    console.print(f"vocabulary: {len(corpus.vocabulary):,} types. The first sentences:")
    for example in corpus.splits["train"][:examples]:
        console.print("  " + " ".join(example.words), highlight=False)
