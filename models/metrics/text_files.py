"""Outputs, inputs and references in the text format of the E2E challenge.

Outputs and inputs: one a line. References: one a line, and a blank line between instances. Plain
or `.gz`, in UTF-8. Only a line feed ends a line, with or without a carriage return before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from models.errors import DataError
from models.files import read_lines


class References(NamedTuple):
    """The references of one instance."""

    line: int  # of the first
    texts: list[str]


class Items(NamedTuple):
    """What a file holds, and where each item starts."""

    path: Path
    what: str
    lines: Sequence[int]


def read_texts(path: Path, what: str) -> list[str]:
    """One text a line, none of them empty; `what` a text is, for messages."""
    texts = read_lines(path)
    if not texts:
        raise DataError(path, f"an empty file, without any {what}")
    if "" in texts:
        raise DataError(path, f"an empty {what}", texts.index("") + 1)
    return texts


def read_references(path: Path) -> list[References]:
    """Instances of one reference or more; one blank line may follow the last."""
    lines = read_lines(path)
    if lines and not lines[-1]:
        lines.pop()
    instances, texts = list[References](), list[str]()
    for number, text in enumerate([*lines, ""], 1):
        if text:
            texts.append(text)
        elif texts:
            instances.append(References(number - len(texts), texts))
            texts = []
        else:
            raise DataError(path, "no reference before the blank line or the end", number)
    return instances


def check_counts(first: Items, second: Items) -> None:
    """Raises a `DataError` unless both files hold as many items."""
    fewer, more = sorted((first, second), key=lambda items: len(items.lines))
    common = len(fewer.lines)
    if common < len(more.lines):
        message = f"{len(more.lines)} {more.what}, but {common} {fewer.what} in {fewer.path}"
        raise DataError(more.path, message, more.lines[common])
