"""Files, read and written in one way: bounded, with errors that name file and line, never half."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from models.errors import DataError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CHUNK = 1 << 20
MOST_BYTES = 1 << 29  # of a file, decompressed: more than the largest release, less than memory
LONGEST_LINE = csv.field_size_limit()  # in characters
HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")  # of which no file can be written


def find_file(directory: Path, *names: str) -> Path:
    """The first of the names that the directory holds, each as it is or with `.gz` added."""
    looked_for = [name + ending for name in names for ending in ("", ".gz")]
    for name in looked_for:
        if (directory / name).is_file():
            return directory / name
    if not directory.is_dir():
        raise DataError(directory, "no such directory")
    raise DataError(directory, f"there is none of {', '.join(looked_for)}")


@contextmanager
def telling(path: Path | str, done: str) -> Iterator[None]:
    """What the system refuses to do with a file becomes a `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(path, f"cannot be {done}: {error.strerror or error}") from error


@contextmanager
def at_line(path: Path, line: int) -> Iterator[None]:
    """A `ValueError` about what stands on a line becomes a `DataError` that names it."""
    try:
        yield
    except ValueError as error:
        raise DataError(path, str(error), line) from error


def chunks(file: io.BufferedIOBase | IO[bytes], path: Path | str) -> Iterator[bytes]:
    """All that an open file holds; a `DataError` where it is too much, or endless."""
    size = 0
    while chunk := file.read(CHUNK):
        size += len(chunk)
        if size > MOST_BYTES:
            raise DataError(path, f"more than {MOST_BYTES >> 20:,} MiB, which no such file has")
        yield chunk


def read_text(path: Path) -> str:
    """The whole of a UTF-8 file, decompressed if its name ends in `.gz`; line ends are kept."""
    with telling(path, "read"):
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                data = b"".join(chunks(file, path)).removeprefix(BYTE_ORDER_MARK)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(path, f"a damaged or incomplete gzip file: {error}") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8 text"
        raise DataError(path, message, line) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(path, "a NUL byte, which is not text", line)
    return text


def read_lines(path: Path) -> list[str]:
    """The lines of a file, without the white space around them; only a line feed ends a line."""
    lines = read_text(path).split("\n")
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST_LINE:
            raise DataError(path, f"a line of more than {LONGEST_LINE:,} characters", number)
    return [line.strip() for line in (lines if lines[-1].strip() else lines[:-1])]


def read_json(path: Path) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(path, f"not JSON: {error.msg}", error.lineno) from error
    except (ValueError, RecursionError) as error:  # numbers too long, brackets too deep
        raise DataError(path, f"not JSON that can be read: {error}") from error


def csv_rows(path: Path, text: str, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV file with just these columns, and the line each starts on."""
    rows = _numbered_rows(path, text)
    line, found = next(rows, (1, []))
    if found != [*columns]:
        raise DataError(path, f"the columns are {found}, not {[*columns]}", line)
    for line, cells in rows:
        if len(cells) != len(columns):
            raise DataError(path, f"{len(cells)} columns, not {len(columns)}", line)
        yield line, cells


def _numbered_rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with cells, and the line each starts on: a quoted cell can go on over several."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(path, f"not CSV: {error}", line) from error
        if cells:
            yield line, cells


def write_bytes(path: Path, data: bytes | memoryview, previous: Path | None = None) -> None:
    """A whole file, or a `DataError`, and the old one stays: written beside it, then renamed.

    The file that was there before is kept as `previous`, if that is given.
    """
    unfinished = path.with_name(path.name + ".unfinished")
    with telling(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with unfinished.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if previous is not None and path.exists():
                os.replace(path, previous)
            os.replace(unfinished, path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            raise


def write_text(path: Path, text: str) -> None:
    """A whole file, in UTF-8, compressed if its name ends in `.gz`."""
    data = text.encode()
    write_bytes(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def write_json(path: Path, content: Any, indent: int | None = 2) -> None:
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")
