"""A saved corpus is the same corpus; nothing else is taken for one."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from models.data.cache import load_corpus, save_corpus
from models.data.corpus import Corpus, Example
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


def test_only_the_files_of_the_corpus_are_left(directory):
    names = ["dev.jsonl.gz", "meta.json", "test.jsonl.gz", "train.jsonl.gz"]
    assert sorted(path.name for path in directory.iterdir()) == names
    meta = json.loads((directory / "meta.json").read_text())
    sentences = {"train": 2, "dev": 1, "test": 1}
    assert meta == {"format": 1, "name": "e2e", "min_count": 2, "sentences": sentences}


def test_saving_again_replaces(directory):
    other = Corpus("coco", {"train": [PLAIN], "dev": [], "test": []})
    save_corpus(other, directory)
    assert load_corpus(directory) == other


def test_equal_corpora_give_equal_bytes(directory, tmp_path):
    save_corpus(CORPUS, tmp_path)
    for path in directory.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_an_interrupted_save_is_no_corpus(directory, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("models.data.cache.os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        save_corpus(CORPUS, directory)
    with refused(r"meta\.json is missing"):
        load_corpus(directory)
    assert not [path for path in directory.iterdir() if path.name.startswith(".")]


def test_a_failed_write_leaves_the_old_corpus(directory, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        save_corpus(Corpus("coco", {"train": [PLAIN]}), directory)
    assert load_corpus(directory) == CORPUS


def test_no_corpus(tmp_path):
    with refused(r"meta\.json is missing"):
        load_corpus(tmp_path)
    with refused(r"meta\.json is missing"):
        load_corpus(tmp_path / "absent")


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "does not describe a prepared corpus"),
        ('{"format": 1}', "does not describe a prepared corpus"),
        ('{"format": 2}', "of format 2, not 1"),
        ('{"name": "a", "min_count": 1, "sentences": {"../x": 1}}', "does not describe"),
    ],
)
def test_a_foreign_meta_file(directory, meta, message):
    (directory / "meta.json").write_text(meta)
    with refused(rf"meta\.json: {message}"):
        load_corpus(directory)


def test_a_truncated_split(directory):
    path = directory / "train.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-15])
    with refused(r"train\.jsonl\.gz: missing or damaged"):
        load_corpus(directory)
    path.unlink()
    with refused(r"train\.jsonl\.gz: missing or damaged"):
        load_corpus(directory)


def test_a_split_of_another_size(directory):
    (directory / "train.jsonl.gz").write_bytes(gzip.compress(b'{"words": ["a"]}\n'))
    with refused("1 sentences, not 2"):
        load_corpus(directory)


@pytest.mark.parametrize(
    "line", ["{", "3", "[1]", '{"words": 3}', '{"tokens": []}', '{"table": [1]}']
)
def test_a_foreign_sentence(directory, line):
    content = f'{{"words": ["a"]}}\n{line}\n'
    (directory / "train.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    with refused(r"train\.jsonl\.gz, line 2: not a prepared sentence"):
        load_corpus(directory)
