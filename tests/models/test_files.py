"""Text is found and read whether it is compressed or not; what is wrong is said with its place."""

from __future__ import annotations

import errno
import gzip
import os
import re

import pytest

from models import files
from models.errors import DataError
from models.files import (
    find_file,
    read_json,
    read_lines,
    read_text,
    write_bytes,
    write_json,
    write_text,
)

TEXT = "café\r\n£20\n"


def test_plain_and_compressed_text_read_alike(tmp_path):
    (tmp_path / "a.csv").write_bytes(TEXT.encode())
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert read_text(tmp_path / "a.csv") == read_text(tmp_path / "b.csv.gz") == TEXT


def test_a_byte_order_mark_is_not_text(tmp_path):
    (tmp_path / "a.csv").write_bytes(TEXT.encode("utf-8-sig"))
    assert read_text(tmp_path / "a.csv") == TEXT


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_byte_that_is_not_utf8_is_placed(tmp_path, name):
    data = "one\r\ntwo\r\ncafé\r\n".encode("latin-1")
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(DataError, match=rf"{re.escape(name)}, line 3: byte 0xe9 is not UTF-8"):
        read_text(path)


def cut(data: bytes) -> bytes:
    return data[:-12]


def damaged(data: bytes) -> bytes:
    return data[:12] + bytes(20) + data[32:]


def plain(data: bytes) -> bytes:
    return gzip.decompress(data)


@pytest.mark.parametrize("spoil", [cut, damaged, plain])
def test_what_is_not_whole_gzip_is_refused(tmp_path, spoil):
    text = " ".join(str(i * i) for i in range(100))
    (tmp_path / "a.csv.gz").write_bytes(spoil(gzip.compress(text.encode())))
    with pytest.raises(DataError, match="damaged or incomplete gzip"):
        read_text(tmp_path / "a.csv.gz")


def test_a_missing_file_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match=r"absent\.csv: cannot be read: No such file"):
        read_text(tmp_path / "absent.csv")


def test_files_are_found_by_preference(tmp_path):
    for name in ("b.csv", "b.csv.gz", "a.csv.gz"):
        (tmp_path / name).touch()
    assert find_file(tmp_path, "a.csv").name == "a.csv.gz"
    assert find_file(tmp_path, "b.csv").name == "b.csv"
    assert find_file(tmp_path, "a.csv", "b.csv").name == "a.csv.gz"


def test_what_was_looked_for_is_listed(tmp_path):
    with pytest.raises(DataError, match=r"none of a\.csv, a\.csv\.gz, b\.csv, b\.csv\.gz"):
        find_file(tmp_path, "a.csv", "b.csv")
    with pytest.raises(DataError, match="absent: no such directory"):
        find_file(tmp_path / "absent", "a.csv")


def test_what_is_written_is_there_whole(tmp_path):
    path = tmp_path / "new" / "file.json"
    write_json(path, {"a": "é"})
    assert read_text(path) == '{\n  "a": "é"\n}\n'
    assert [file.name for file in path.parent.iterdir()] == ["file.json"]


@pytest.fixture
def full_disk(monkeypatch):
    """No byte of what is written reaches the disk."""

    def refuse(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)


def test_a_full_disk_leaves_the_old_files(tmp_path, full_disk):
    (tmp_path / "file").write_text("old")
    (tmp_path / "previous").write_text("older")
    with pytest.raises(DataError, match="file: cannot be written: No space left on device"):
        write_bytes(tmp_path / "file", b"new", tmp_path / "previous")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"file": "old", "previous": "older"}


def test_the_previous_file_is_kept_if_asked(tmp_path):
    path, previous = tmp_path / "file", tmp_path / "previous"
    for data in (b"1", b"2", b"3"):
        write_bytes(path, data, previous)
    assert (path.read_bytes(), previous.read_bytes()) == (b"3", b"2")
    write_bytes(path, b"4")
    assert (path.read_bytes(), previous.read_bytes()) == (b"4", b"2")


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"file/new: cannot be written: (Not a dir|File exists)"):
        write_text(tmp_path / "file" / "new", "text")


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match="cannot be written: Is a directory"):
        write_text(tmp_path, "text")


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_what_is_too_much_is_not_read(tmp_path, monkeypatch, name):
    """A few bytes of gzip can hold gigabytes: reading ends when it is too much."""
    monkeypatch.setattr(files, "MOST_BYTES", 3 << 20)
    write_text(tmp_path / name, "a" * (8 << 20))
    with pytest.raises(DataError, match=rf"{name}: more than 3 MiB"):
        read_text(tmp_path / name)


def test_a_file_without_end(monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    with pytest.raises(DataError, match="/dev/zero: more than 1 MiB"):
        read_text(files.Path("/dev/zero"))


def test_a_nul_byte_is_placed(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\0\n")
    with pytest.raises(DataError, match=r"a\.txt, line 2: a NUL byte"):
        read_text(tmp_path / "a.txt")


def test_lines(tmp_path):
    (tmp_path / "a.txt").write_bytes(b" one\r\n\ntwo\x0c2\n")
    assert read_lines(tmp_path / "a.txt") == ["one", "", "two\x0c2"]


def test_an_endless_line_is_placed(tmp_path):
    (tmp_path / "a.txt").write_text("one\n" + "a" * 200_000 + "\nthree\n")
    with pytest.raises(DataError, match="line 2: a line of more than 131,072 characters"):
        read_lines(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n1}", "line 2: not JSON: Expecting property name"),
        ("[" * 100_000, "a.json: not JSON that can be read: maximum recursion depth"),
        ("9" * 5000, "a.json: not JSON that can be read: Exceeds the limit"),
    ],
    ids=["malformed", "deep", "a long number"],
)
def test_json_that_is_none(tmp_path, text, message):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read_json(tmp_path / "a.json")
