"""Reading text files, plain or compressed, and writing files that a kill cannot spoil."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from models.errors import DataError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def find_file(directory: Path, *names: str) -> Path:
    """The first of the names that the directory holds, each as it is or with `.gz` added."""
    looked_for = [name + ending for name in names for ending in ("", ".gz")]
    for name in looked_for:
        if (directory / name).is_file():
            return directory / name
    if not directory.is_dir():
        raise DataError(directory, "no such directory")
    raise DataError(directory, f"there is none of {', '.join(looked_for)}")


def read_text(path: Path) -> str:
    """The whole of a UTF-8 file, decompressed if its name ends in `.gz`; line ends are kept."""
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(path, f"a damaged or incomplete gzip file: {error}") from error
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from error
    data = data.removeprefix(BYTE_ORDER_MARK)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8 text"
        raise DataError(path, message, line) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, renamed to `path` at the end: at any time one whole file is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    yield unfinished
    os.replace(unfinished, path)


def write_text(path: Path, text: str) -> None:
    """A whole file, in UTF-8, compressed if its name ends in `.gz`; a `DataError` if it fails."""
    data = text.encode()
    try:
        with replacing(path) as unfinished:
            unfinished.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise DataError(path, f"cannot be written: {error.strerror}") from error


def write_json(path: Path, content: Any, indent: int | None = 2) -> None:
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")
