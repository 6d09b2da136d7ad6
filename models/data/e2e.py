"""The E2E challenge data: tables about restaurants, and sentences that say what they say."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from models.data.corpus import Corpus, Example
from models.data.delexicalise import delexicalise
from models.data.errors import DataError
from models.data.files import find_file, read_text
from models.data.tables import Table, format_table, parse_table
from models.data.tokens import tokenise

FILES = {"train": "trainset.csv", "dev": "devset.csv", "test": "testset_w_refs.csv"}
PAIRS_HEADER = ["mr", "ref"]
TABLES_HEADER = ["MR"]  # of the official test set without references


class Row(NamedTuple):
    table: Table
    text: str  # empty in a file of tables alone
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
    return [_row(path, line, mr, text) for line, (mr, text) in _cells(path, PAIRS_HEADER)]


def read_e2e_tables(path: Path) -> list[Row]:
    """The official test set without references: one column, `MR`."""
    return [_row(path, line, mr, None) for line, (mr,) in _cells(path, TABLES_HEADER)]


def _example(row: Row, max_words: int) -> Example:
    words = delexicalise(tokenise(row.text), row.table)
    return Example(tuple(words[:max_words]), row.text, row.table, format_table(row.table))


def _row(path: Path, line: int, mr: str, text: str | None) -> Row:
    if text is not None and not text.strip():
        raise DataError(path, "an empty ref", line)
    try:
        return Row(parse_table(mr), (text or "").strip(), line)
    except ValueError as error:
        raise DataError(path, str(error), line) from error


def _cells(path: Path, header: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of every row under the header; blank lines are passed over."""
    lines = _numbered(path)
    line, found = next(lines, (1, []))
    if found != header:
        raise DataError(path, f"the columns are {found}, not {header}", line)
    for line, cells in lines:
        if len(cells) != len(header):
            raise DataError(path, f"{len(cells)} columns, not {len(header)}", line)
        yield line, cells


def _numbered(path: Path) -> Iterator[tuple[int, list[str]]]:
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
