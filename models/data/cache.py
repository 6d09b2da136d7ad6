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
from models.data.errors import DataError
from models.data.files import read_text

META = "meta.json"
FORMAT = 1  # of the files; a cache of another format is prepared again, not converted
ADVICE = "run `python -m models data NAME ...` again"
UNKNOWN_ALL = Example(())  # an example's defaults, which are not written


def save_corpus(corpus: Corpus, directory: Path) -> None:
    """Writes all files aside, then moves them into place, the meta file last.

    While they move there is no meta file, so an interrupted save is never taken for a corpus.
    """
    directory.mkdir(parents=True, exist_ok=True)
    contents = {_file_name(split): _packed(examples) for split, examples in corpus.splits.items()}
    contents[META] = json.dumps(_meta(corpus), indent=2).encode() + b"\n"
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
        split: _read_split(directory / _file_name(split), count)
        for split, count in meta["sentences"].items()
    }
    return Corpus(meta["name"], splits, meta["min_count"])


def _file_name(split: str) -> str:
    return f"{split}.jsonl.gz"


def _meta(corpus: Corpus) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": corpus.name,
        "min_count": corpus.min_count,
        "sentences": {split: len(examples) for split, examples in corpus.splits.items()},
    }


def _is_meta(meta: Any) -> bool:
    return (
        isinstance(meta, dict)
        and isinstance(meta.get("name"), str)
        and isinstance(meta.get("min_count"), int)
        and isinstance(meta.get("sentences"), dict)
        and set(meta["sentences"]) <= set(SPLITS)
    )


def _read_meta(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DataError(path.parent, f"no prepared corpus here, {META} is missing; {ADVICE}")
    try:
        meta = json.loads(read_text(path))
    except ValueError as error:
        raise DataError(path, f"cannot be read; {ADVICE}") from error
    if isinstance(meta, dict) and meta.get("format", FORMAT) != FORMAT:
        raise DataError(path, f"of format {meta['format']}, not {FORMAT}; {ADVICE}")
    if not _is_meta(meta):
        raise DataError(path, f"does not describe a prepared corpus; {ADVICE}")
    return meta


def _packed(examples: Sequence[Example]) -> bytes:
    lines = [json.dumps(_record(example), ensure_ascii=False) + "\n" for example in examples]
    return gzip.compress("".join(lines).encode(), mtime=0)


def _record(example: Example) -> dict[str, Any]:
    fields = vars(example).items()
    return {name: value for name, value in fields if value != getattr(UNKNOWN_ALL, name)}


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
