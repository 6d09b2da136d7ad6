"""Outputs and references are read strictly: every error names the file and the line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from models.errors import DataError
from models.metrics.text_files import Items, check_counts, read_references, read_texts


@pytest.fixture
def file(tmp_path):
    def write(content: str | bytes, name: str = "texts.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize("content", ["a b\nc\n", "a b\nc", "a b\r\nc\r\n", "\ufeffa b\n c \n"])
def test_one_text_a_line(file, content):
    assert read_texts(file(content), "output") == ["a b", "c"]


def test_compressed(file):
    assert read_texts(file(gzip.compress("£20\n".encode()), "t.txt.gz"), "output") == ["£20"]


def test_only_a_line_feed_ends_a_line(file):
    assert read_texts(file("a\u2028b\x0cc\x85d\n"), "output") == ["a\u2028b\x0cc\x85d"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "texts.txt: an empty file, without any output"),
        ("a\n \nb\n", "texts.txt, line 2: an empty output"),
        ("a\nb\n\n", "texts.txt, line 3: an empty output"),
        (b"a\nb\xff\n", "texts.txt, line 2: byte 0xff is not UTF-8"),
    ],
)
def test_bad_outputs(file, content, message):
    with pytest.raises(DataError, match=message):
        read_texts(file(content), "output")


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\r\n\r\n"])
def test_references_in_blocks(file, ending):
    blocks = read_references(file("a\nb\n\nc" + ending))
    assert blocks == [(1, ["a", "b"]), (4, ["c"])]


@pytest.mark.parametrize(
    ("content", "line"),
    [("", 1), ("\na\n", 1), ("a\n\n\nb\n", 3), ("a\n \n\t\nb\n", 3), ("a\n\n\n", 3)],
)
def test_a_block_without_references(file, content, line):
    with pytest.raises(DataError, match=f"texts.txt, line {line}: no reference"):
        read_references(file(content))


def test_undecodable_references(file):
    with pytest.raises(DataError, match="line 3: byte 0xe9"):
        read_references(file("a\n\ncaf\u00e9\n".encode("latin-1")))


def test_counts_that_differ_name_the_first_item_too_many():
    outputs = Items(Path("outputs"), "outputs", [1, 2])
    check_counts(outputs, Items(Path("inputs"), "inputs", [1, 2]))
    with pytest.raises(DataError, match="refs, line 9: 3 blocks, but 2 outputs in outputs"):
        check_counts(outputs, Items(Path("refs"), "blocks", [1, 4, 9]))
    with pytest.raises(DataError, match="outputs, line 2: 2 outputs, but 1 blocks in refs"):
        check_counts(outputs, Items(Path("refs"), "blocks", [1]))
