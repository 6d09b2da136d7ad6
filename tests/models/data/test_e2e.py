"""E2E files are read whole; a malformed row is named by the line on which it starts."""

from __future__ import annotations

import gzip
import re

import pytest

from models.data.readers import E2E_FILES, Row, e2e_corpus, read_e2e
from models.errors import DataError

HEADER = "mr,ref\r\n"
GOOD = '"name[The Vaults], eatType[pub]",The Vaults is a pub.\r\n'
OVER_TWO_LINES = 'name[Zizzi],"Zizzi is\r\nhere."\r\n'
TABLE = (("name", "The Vaults"), ("eatType", "pub"))

MALFORMED = {
    "one column": ("name[Zizzi]\r\n", "1 columns, not 2"),
    "three columns": ("name[Zizzi],Zizzi,is here\r\n", "3 columns, not 2"),
    "no text": ("name[Zizzi],\r\n", "an empty ref"),
    "blank text": ('name[Zizzi]," \r\n "\r\n', "an empty ref"),
    "no table": (",Zizzi is here.\r\n", "nothing where a pair key[value] should be"),
    "half a table": ("name[Zizzi,Zizzi is here.\r\n", "the bracket after 'name' is not closed"),
    "key twice": ('"name[a], name[b]",a is b.\r\n', "'name' is there twice"),
    "text after a quote": ('name[Zizzi],"Zizzi" is\r\n', "not CSV: ',' expected after '\"'"),
    "endless cell": (f"name[Zizzi],{'a' * 200_000}\r\n", "not CSV: field larger than field limit"),
    "open quote": ('name[Zizzi],"Zizzi\r\nis here.\r\n', "not CSV: unexpected end of data"),
}


@pytest.fixture
def write(tmp_path):
    def write(text, name="trainset.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["trainset.csv", "trainset.csv.gz"])
def test_rows(write, name):
    path = write(HEADER + GOOD + OVER_TWO_LINES + GOOD, name)
    zizzi = Row((("name", "Zizzi"),), "Zizzi is\r\nhere.", 3)
    text = "The Vaults is a pub."
    assert read_e2e(path) == [Row(TABLE, text, 2), zizzi, Row(TABLE, text, 5)]


def test_line_ends_do_not_matter(write):
    rows = read_e2e(write(HEADER + GOOD + GOOD))
    assert read_e2e(write((HEADER + GOOD + GOOD).replace("\r", ""))) == rows


def test_blank_lines_are_passed_over(write):
    assert [row.line for row in read_e2e(write(HEADER + "\r\n" + GOOD + "\r\n"))] == [3]


@pytest.mark.parametrize(("row", "message"), MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize(
    ("before", "line"), [("", 2), (GOOD, 3), (OVER_TWO_LINES, 4), (GOOD + 2 * OVER_TWO_LINES, 7)]
)
def test_malformed_rows(write, row, message, before, line):
    path = write(HEADER + before + row)
    with pytest.raises(DataError, match=rf"trainset\.csv, line {line}: {re.escape(message)}"):
        read_e2e(path)


@pytest.mark.parametrize("header", ["", "MR\r\n", "ref,mr\r\n", "mr,ref,id\r\n", GOOD])
def test_a_wrong_header(write, header):
    path = write(header + GOOD)
    expected = r"line 1: the columns are \[.*\], not \['mr', 'ref'\]"
    with pytest.raises(DataError, match=expected):
        read_e2e(path)


def test_a_byte_order_mark(tmp_path):
    (tmp_path / "trainset.csv").write_bytes((HEADER + GOOD).encode("utf-8-sig"))
    assert [row.table for row in read_e2e(tmp_path / "trainset.csv")] == [TABLE]


def test_a_nul_byte(write):
    with pytest.raises(DataError, match=r"trainset\.csv, line 3: a NUL byte"):
        read_e2e(write(HEADER + GOOD + "name[Zizzi],Ziz\0zi\r\n"))


def test_a_byte_that_is_not_utf8(tmp_path):
    (tmp_path / "trainset.csv").write_bytes((HEADER + "name[Café],Café\r\n").encode("latin-1"))
    with pytest.raises(DataError, match="line 2: byte 0xe9 is not UTF-8"):
        read_e2e(tmp_path / "trainset.csv")


def test_corpus(write, tmp_path):
    for name in E2E_FILES.values():
        write(HEADER + GOOD + OVER_TWO_LINES, f"{name}.gz")
    corpus = e2e_corpus(tmp_path, max_words=4, min_count=1)
    assert list(corpus.splits) == ["train", "dev", "test"]
    vaults, zizzi = corpus.splits["test"]
    assert vaults.words == ("_name_", "_name_", "is", "a")
    assert (vaults.text, vaults.table) == ("The Vaults is a pub.", TABLE)
    assert vaults.group == "name[The Vaults], eatType[pub]"
    assert zizzi.words == ("_name_", "is", "here", ".")


def test_a_missing_split(write, tmp_path):
    write(HEADER + GOOD)
    with pytest.raises(DataError, match=r"none of devset\.csv, devset\.csv\.gz"):
        e2e_corpus(tmp_path)


@pytest.fixture(scope="module")
def real_corpus(e2e_directory):
    return e2e_corpus(e2e_directory)


def test_real_data_is_complete(real_corpus):
    rows = {split: len(examples) for split, examples in real_corpus.splits.items()}
    tables = {split: len({e.group for e in es}) for split, es in real_corpus.splits.items()}
    assert rows == {"train": 42061, "dev": 4672, "test": 4693}
    assert tables == {"train": 4862, "dev": 547, "test": 630}


def test_real_vocabulary_is_small(real_corpus):
    """The paper's has about 945 words; ours has many compounds such as family-friendly."""
    assert 950 <= len(real_corpus.vocabulary) <= 1350
    longest = max(len(e.words) for es in real_corpus.splits.values() for e in es)
    assert longest == 37
