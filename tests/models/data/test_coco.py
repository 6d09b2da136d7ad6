"""Captions are read from the official format; images, not captions, are split."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from models.data.readers import Caption, coco_corpus, held_out_images, read_captions
from models.errors import DataError

DOG = {"image_id": 7, "id": 1, "caption": "A dog\n runs. \n"}

MALFORMED = {
    '{"annotations":\n [}': ", line 2: not JSON",
    "": ", line 1: not JSON",
    "[]": 'no list "annotations"',
    '{"images": []}': 'no list "annotations"',
    '{"annotations": {}}': 'no list "annotations"',
    '{"annotations": [3]}': "annotation 0 is not an object",
    '{"annotations": [{"image_id": 7, "caption": "a"}, {"caption": "b"}]}': (
        'annotation 1 has no "image_id"'
    ),
    '{"annotations": [{"image_id": 7}]}': 'annotation 0 has no "caption"',
    '{"annotations": [{"image_id": 7, "caption": null}]}': (
        '"caption" of annotation 0 is None, not str'
    ),
    '{"annotations": ' + "[" * 100_000: ": not JSON that can be read: maximum recursion depth",
    '{"annotations": [{"image_id": 7, "caption": "a\\ud83d"}]}': (
        "half a character, which no file can hold, in annotation 0"
    ),
    '{"annotations": [{"image_id": "7", "caption": "a"}]}': (
        "\"image_id\" of annotation 0 is '7', not int"
    ),
}


def content(annotations: list[dict]) -> str:
    return json.dumps({"images": [], "annotations": annotations})


def captions_of(images: int) -> str:
    """Two for each image: `a 3 first`, `a 3 second`."""
    order = ("first", "second")
    return content([{"image_id": i, "caption": f"a {i} {o}"} for o in order for i in range(images)])


def test_captions_are_on_one_line(tmp_path):
    (tmp_path / "a.json").write_text(content([DOG]))
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(content([DOG]).encode()))
    for name in ("a.json", "a.json.gz"):
        assert read_captions(tmp_path / name) == [Caption(7, "A dog runs.")]


@pytest.mark.parametrize(("text", "message"), MALFORMED.items())
def test_malformed_files(tmp_path, text, message):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=rf"a\.json.*{re.escape(message)}"):
        read_captions(tmp_path / "a.json")


def test_images_are_held_out_by_their_ids_alone():
    ids = [5 * i for i in range(12000)]
    held_out = held_out_images(ids)
    assert len(held_out) == 1000
    assert held_out <= set(ids)
    assert held_out == held_out_images(reversed(ids + ids))
    assert len(held_out_images(range(40))) == 4
    assert held_out_images(range(3)) == set()


def test_corpus(tmp_path):
    (tmp_path / "captions_train_pool.json").write_text(captions_of(20))
    (tmp_path / "captions_val2017.json").write_text(content([DOG]))
    corpus = coco_corpus(tmp_path, max_words=2)
    groups = {split: {e.group for e in examples} for split, examples in corpus.splits.items()}
    assert groups["dev"] == {"0", "10"}
    assert groups["train"] == {str(i) for i in range(20)} - groups["dev"]
    assert [len(examples) for examples in corpus.splits.values()] == [36, 4, 1]
    (dog,) = corpus.splits["test"]
    assert (dog.words, dog.text, dog.group) == (("a", "dog"), "A dog runs.", "7")
    assert corpus.min_count == 1


def test_the_official_training_file_is_preferred(tmp_path):
    (tmp_path / "captions_train_pool.json").write_text(captions_of(20))
    (tmp_path / "captions_train2017.json").write_text(captions_of(10))
    (tmp_path / "captions_val2017.json").write_text(captions_of(1))
    assert len(coco_corpus(tmp_path).splits["train"]) == 18


def test_a_caption_that_says_nothing_is_left_out(tmp_path):
    (tmp_path / "captions_train_pool.json").write_text(captions_of(10))
    (tmp_path / "captions_val2017.json").write_text(content([DOG, {**DOG, "caption": " \n"}]))
    assert len(coco_corpus(tmp_path).splits["test"]) == 1


@pytest.mark.parametrize(("most_words", "min_count"), [(100, 1), (5, 1), (4, 3), (2, 4), (1, 4)])
def test_rare_words_make_room(tmp_path, monkeypatch, most_words, min_count):
    """Counts 4, 3, 3, 2, 2 would fill 5 places; with 4, the two rarest words go, and so on."""
    monkeypatch.setattr("models.data.corpus.MOST_WORDS", most_words)
    text = "a a a a b b b c c c d d e e"
    (tmp_path / "captions_train_pool.json").write_text(content([{**DOG, "caption": text}]))
    (tmp_path / "captions_val2017.json").write_text(captions_of(1))
    assert coco_corpus(tmp_path).min_count == min_count


@pytest.fixture(scope="module")
def real_corpus(coco_directory):
    return coco_corpus(coco_directory)


def test_real_data_is_complete(real_corpus):
    captions = {split: len(examples) for split, examples in real_corpus.splits.items()}
    images = {split: len({e.group for e in es}) for split, es in real_corpus.splits.items()}
    assert captions["test"] == 25014
    assert captions["train"] + captions["dev"] == 88974
    assert images == {"train": 16788, "dev": 1000, "test": 5000}


def test_real_splits_share_no_image(real_corpus):
    train, dev, test = ({e.group for e in examples} for examples in real_corpus.splits.values())
    assert not train & dev
    assert not (train | dev) & test


def test_real_vocabulary_is_that_of_the_paper_in_size(real_corpus):
    assert 6000 <= len(real_corpus.vocabulary) <= 8004
    assert all("\n" not in e.text for e in real_corpus.splits["train"])
