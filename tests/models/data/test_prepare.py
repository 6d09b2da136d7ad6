"""A release becomes a corpus on disk, whether it is at hand or downloaded."""

from __future__ import annotations

import pytest

from models.data import prepare as module
from models.data.cache import load_corpus
from models.data.e2e import FILES
from models.data.errors import DataError
from models.data.prepare import prepare

CONTENT = "mr,ref\nname[Zizzi],Zizzi is here.\n"


def write_release(directory):
    directory.mkdir(parents=True)
    for name in FILES.values():
        (directory / name).write_text(CONTENT)


def test_from_a_directory(tmp_path):
    write_release(tmp_path / "release")
    corpus = prepare("e2e", tmp_path / "release", False, tmp_path / "prepared")
    assert load_corpus(tmp_path / "prepared") == corpus
    assert corpus.splits["dev"][0].words == ("_name_", "is", "here", ".")


def test_by_download(tmp_path, monkeypatch):
    monkeypatch.setitem(module.DOWNLOADS, "e2e", write_release)
    corpus = prepare("e2e", None, True, tmp_path / "prepared")
    assert load_corpus(tmp_path / "prepared") == corpus


@pytest.mark.parametrize("name", ["e2e", "coco"])
def test_an_unsuitable_directory(tmp_path, name):
    with pytest.raises(DataError, match="there is none of"):
        prepare(name, tmp_path, False, tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()


def test_an_empty_split(tmp_path):
    write_release(tmp_path / "release")
    (tmp_path / "release" / "devset.csv").write_text("mr,ref\n")
    with pytest.raises(DataError, match="no sentence for the dev split"):
        prepare("e2e", tmp_path / "release", False, tmp_path / "prepared")


def test_arguments_that_make_no_sense(tmp_path):
    with pytest.raises(ValueError, match="no corpus 'wiki'; there are e2e, coco"):
        prepare("wiki", tmp_path, False, tmp_path)
    with pytest.raises(ValueError, match="not both"):
        prepare("e2e", tmp_path, True, tmp_path)
    with pytest.raises(ValueError, match="either a directory"):
        prepare("e2e", None, False, tmp_path)
