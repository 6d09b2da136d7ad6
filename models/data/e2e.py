"""The E2E challenge data: tables about restaurants, and sentences that say what they say."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from models.data.corpus import Corpus, Example
from models.data.delexicalise import delexicalise
from models.data.tables import Table, format_table, parse_table
from models.data.tokens import tokenise
from models.errors import DataError
from models.files import find_file, read_text

FILES = {"train": "trainset.csv", "dev": "devset.csv", "test": "testset_w_refs.csv"}
HEADER = ["mr", "ref"]


class Row(NamedTuple):
    table: Table
    text: str
    line: int  # where the row starts in its file


def e2e_corpus(directory: Path, max_words: int = 37, min_count: int = 3) -> Corpus:
    """The three official splits, delexicalised; the length is the paper's."""
    splits = {
        split: [_example(row, max_words) for row in read_e2e(find_file(directory, name))]
        for split, name in FILES.items()
    }
    return Corpus("e2e", splits, min_count)


def read_e2e(path: Path) -> list[Row]:
    """A file with the columns `mr,ref`; `DataError` for any row that is not a table and a text."""
    lines = _numbered_rows(path)
    line, found = next(lines, (1, []))
    if found != HEADER:
        raise DataError(path, f"the columns are {found}, not {HEADER}", line)
    return [_row(path, line, cells) for line, cells in lines]


def _example(row: Row, max_words: int) -> Example:
    words = delexicalise(tokenise(row.text), row.table)
    return Example(tuple(words[:max_words]), row.text, row.table, format_table(row.table))


def _row(path: Path, line: int, cells: list[str]) -> Row:
    if len(cells) != len(HEADER):
        raise DataError(path, f"{len(cells)} columns, not {len(HEADER)}", line)
    table, text = cells
    if not text.strip():
        raise DataError(path, "an empty ref", line)
    try:
        return Row(parse_table(table), text.strip(), line)
    except ValueError as error:
        raise DataError(path, str(error), line) from error


def _numbered_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows with cells, and the line each starts on: a quoted cell can go on over several."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
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
