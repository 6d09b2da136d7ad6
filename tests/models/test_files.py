"""Text is found and read whether it is compressed or not; what is wrong is said with its place."""

from __future__ import annotations

import gzip
import re

import pytest

from models.errors import DataError
from models.files import find_file, read_text, replacing, write_json, write_text

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


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    (tmp_path / "file").write_text("old")

    def interrupted():
        with replacing(tmp_path / "file") as unfinished:
            unfinished.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "file").read_text() == "old"


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match="cannot be written: Is a directory"):
        write_text(tmp_path, "text")
