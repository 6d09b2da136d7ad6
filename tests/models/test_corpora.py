"""A release becomes a corpus on disk, whether it is at hand or downloaded."""

from __future__ import annotations

import pytest

from models.corpora import prepare
from models.data.corpus import load_corpus
from models.data.readers import E2E_FILES
from models.errors import DataError

CONTENT = "mr,ref\nname[Zizzi],Zizzi is here.\n"


def write_release(directory):
    directory.mkdir(parents=True)
    for name in E2E_FILES.values():
        (directory / name).write_text(CONTENT)


def test_from_a_directory(tmp_path):
    write_release(tmp_path / "release")
    corpus = prepare("e2e", tmp_path / "release", tmp_path / "prepared")
    assert load_corpus(tmp_path / "prepared") == corpus
    assert corpus.splits["dev"][0].words == ("_name_", "is", "here", ".")


def test_by_download(tmp_path, monkeypatch):
    monkeypatch.setattr("models.corpora.download", lambda release, target: write_release(target))
    corpus = prepare("e2e", None, tmp_path / "prepared")
    assert load_corpus(tmp_path / "prepared") == corpus


@pytest.mark.parametrize("name", ["e2e", "coco"])
def test_an_unsuitable_directory(tmp_path, name):
    with pytest.raises(DataError, match="there is none of"):
        prepare(name, tmp_path, tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()


def test_an_empty_split(tmp_path):
    write_release(tmp_path / "release")
    (tmp_path / "release" / "devset.csv").write_text("mr,ref\n")
    with pytest.raises(DataError, match="no sentence for the dev split"):
        prepare("e2e", tmp_path / "release", tmp_path / "prepared")


def test_own_text(tmp_path):
    """One sentence a line, tokenised or not; the last of every ten are held out."""
    lines = [f"Sentence {i} isn't long." for i in range(19)]
    (tmp_path / "mine.txt").write_text("\n\n".join([*lines, "this one is tokenised , too ."]))
    corpus = prepare("text", tmp_path / "mine.txt", tmp_path / "prepared")
    assert load_corpus(tmp_path / "prepared") == corpus
    assert {name: len(split) for name, split in corpus.splits.items()} == {
        "train": 16,
        "dev": 2,
        "test": 2,
    }
    assert corpus.splits["dev"][0].words == ("sentence", "8", "isn't", "long", ".")
    assert corpus.splits["test"][1].words == ("this", "one", "is", "tokenised", ",", "too", ".")


def test_few_sentences_still_fill_all_splits(tmp_path):
    (tmp_path / "mine.txt").write_text("one\ntwo\nthree\nfour\n")
    splits = prepare("text", tmp_path / "mine.txt", tmp_path / "prepared").splits
    assert [[e.text for e in split] for split in splits.values()] == [
        ["one", "two"],
        ["three"],
        ["four"],
    ]
    (tmp_path / "mine.txt").write_text("one\ntwo\n")
    with pytest.raises(DataError, match="2 sentences; at least 3"):
        prepare("text", tmp_path / "mine.txt", tmp_path / "prepared")
