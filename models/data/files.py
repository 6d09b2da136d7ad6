"""Text files, plain or compressed."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from models.data.errors import DataError

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
    data = _read_bytes(path).removeprefix(BYTE_ORDER_MARK)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8 text"
        raise DataError(path, message, line) from error


def _read_bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(path, f"a damaged or incomplete gzip file: {error}") from error
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from error
