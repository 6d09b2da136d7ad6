"""A corpus that has been read once, kept so that it need not be read again.

A directory holds `meta.json` and, for each split, `SPLIT.jsonl.gz` with an example on each line.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from models.data.corpus import SPLITS, Corpus, Example
from models.errors import DataError
from models.files import read_text

META = "meta.json"
SPLIT = "{}.jsonl.gz"
FORMAT = 1  # of the files; a cache of another format is prepared again, not converted
ADVICE = "run `python -m models data NAME ...` again"
DEFAULTS = vars(Example(()))  # an example's defaults, which are not written


def save_corpus(corpus: Corpus, directory: Path) -> None:
    """Writes all files aside, then moves them into place, the meta file last.

    While they move there is no meta file, so an interrupted save is never taken for a corpus.
    """
    directory.mkdir(parents=True, exist_ok=True)
    meta = {
        "format": FORMAT,
        "name": corpus.name,
        "min_count": corpus.min_count,
        "sentences": {split: len(examples) for split, examples in corpus.splits.items()},
    }
    contents = {SPLIT.format(name): _packed(examples) for name, examples in corpus.splits.items()}
    contents[META] = json.dumps(meta, indent=2).encode() + b"\n"
    with tempfile.TemporaryDirectory(prefix=".save-", dir=directory) as aside:
        for name, content in contents.items():
            Path(aside, name).write_bytes(content)
        (directory / META).unlink(missing_ok=True)
        for name in contents:
            os.replace(Path(aside, name), directory / name)


def load_corpus(directory: Path) -> Corpus:
    """What `save_corpus` wrote; a `DataError` for anything else."""
    meta = _read_meta(directory / META)
    splits = {
        split: _read_split(directory / SPLIT.format(split), count)
        for split, count in meta["sentences"].items()
    }
    return Corpus(meta["name"], splits, meta["min_count"])


def _read_meta(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DataError(path.parent, f"no prepared corpus here, {META} is missing; {ADVICE}")
    try:
        meta = json.loads(read_text(path))
    except ValueError as error:
        raise DataError(path, f"cannot be read; {ADVICE}") from error
    if isinstance(meta, dict) and meta.get("format", FORMAT) != FORMAT:
        raise DataError(path, f"of format {meta['format']}, not {FORMAT}; {ADVICE}")
    kinds = {"name": str, "min_count": int, "sentences": dict}
    fits = isinstance(meta, dict) and all(isinstance(meta.get(k), t) for k, t in kinds.items())
    if not fits or not set(meta["sentences"]) <= set(SPLITS):
        raise DataError(path, f"does not describe a prepared corpus; {ADVICE}")
    return meta


def _packed(examples: Sequence[Example]) -> bytes:
    """An example on each line, compressed."""
    records = (
        {name: value for name, value in vars(example).items() if value != DEFAULTS[name]}
        for example in examples
    )
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    return gzip.compress("".join(lines).encode(), mtime=0)


def _read_split(path: Path, count: int) -> list[Example]:
    try:
        lines = read_text(path).split("\n")[:-1]
    except DataError as error:
        raise DataError(path, f"missing or damaged; {ADVICE}") from error
    if len(lines) != count:
        raise DataError(path, f"{len(lines)} sentences, not {count}; {ADVICE}")
    return [_example(path, number, line) for number, line in enumerate(lines, 1)]


def _example(path: Path, number: int, line: str) -> Example:
    try:
        record = {"words": (), **json.loads(line)}
        for name in {"words", "slots"} & record.keys():
            record[name] = tuple(record[name])
        if "table" in record:
            record["table"] = tuple((key, value) for key, value in record["table"])
        return Example(**record)
    except (ValueError, TypeError) as error:
        raise DataError(path, f"not a prepared sentence; {ADVICE}", number) from error
