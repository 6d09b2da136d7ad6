"""A saved corpus is the same corpus; nothing else is taken for one."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from models.data.corpus import FILE, Corpus, Example, load_corpus, save_corpus
from models.errors import DataError

TABLE = (("name", "Café Rouge"),)
PLAIN = Example(("a", "dog"))
FULL = Example(("_name_", "'s"), "Café\u2028Rouge's\n", TABLE, "name[Café Rouge]", ("x", "y"))
CORPUS = Corpus("e2e", {"train": [FULL, PLAIN], "dev": [PLAIN], "test": [Example(())]}, 2)
ADVICE = "run `python -m models data NAME ...` again"


@pytest.fixture
def directory(tmp_path):
    save_corpus(CORPUS, tmp_path / "new" / "corpus")
    return tmp_path / "new" / "corpus"


def refused(message):
    return pytest.raises(DataError, match=f"{message}.*{re.escape(ADVICE)}")


def test_round_trip(directory):
    loaded = load_corpus(directory)
    assert loaded == CORPUS
    assert loaded.vocabulary.words == CORPUS.vocabulary.words


def test_one_file_is_left(directory):
    assert [path.name for path in directory.iterdir()] == [FILE]


def test_saving_again_replaces(directory):
    other = Corpus("coco", {"train": [PLAIN], "dev": [], "test": []})
    save_corpus(other, directory)
    assert load_corpus(directory) == other


def test_equal_corpora_give_equal_bytes(directory, tmp_path):
    save_corpus(CORPUS, tmp_path)
    for path in directory.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_a_failed_or_interrupted_save_leaves_the_old_corpus(directory, monkeypatch):
    def fail(*_):
        raise OSError(28, "disk full")

    def interrupt(*_):
        raise KeyboardInterrupt

    other = Corpus("coco", {"train": [PLAIN]})
    monkeypatch.setattr("models.files.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_corpus(other, directory)
    monkeypatch.setattr("models.files.os.fsync", fail)
    with pytest.raises(DataError, match="cannot be written: disk full"):
        save_corpus(other, directory)
    assert load_corpus(directory) == CORPUS


def test_no_corpus(tmp_path):
    with refused(f"{FILE} is missing"):
        load_corpus(tmp_path)
    with refused(f"{FILE} is missing"):
        load_corpus(tmp_path / "absent")


GOOD = {"format": 2, "name": "e2e", "min_count": 1, "splits": {"train": []}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "no prepared corpus"),
        ({}, "no prepared corpus"),
        (GOOD | {"format": 1}, "of format 1, not 2"),
        (GOOD | {"splits": []}, "no prepared corpus"),
        *(
            (GOOD | {"splits": {"train": [record]}}, "no prepared corpus")
            for record in (3, [1], {"words": 3}, {"tokens": []}, {"table": [1]})
        ),
    ],
)
def test_a_foreign_file(directory, content, message):
    (directory / FILE).write_bytes(gzip.compress(json.dumps(content).encode()))
    with refused(message):
        load_corpus(directory)


@pytest.mark.parametrize("kept", [0, 1, 20, -15])
def test_a_damaged_file(directory, kept):
    path = directory / FILE
    path.write_bytes(path.read_bytes()[:kept])
    with refused(f"{FILE}: damaged|{FILE}: no prepared corpus"):
        load_corpus(directory)
