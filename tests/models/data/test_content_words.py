"""A bag holds what a caption is about."""

from __future__ import annotations

import pytest

from models.data.readers import COCO_TEST, read_captions
from models.data.tokens import content_words, stop_words, tokenise

BAGS = {
    "Two young men are standing next to a bus.": "two young men standing bus",
    "A man, another man and the man's dog": "man dog",
    "There is a 5-star café on each of its sides!": "5-star café sides",
    "It isn't on, it's under.": "it isn't on 's under",
    "A cat with 3 cats": "cat 3 cats",
    "...": "",
    "": "",
}


@pytest.mark.parametrize(("caption", "bag"), BAGS.items())
def test_examples(caption, bag):
    assert content_words(tokenise(caption)) == bag.split()


def test_the_limit_keeps_the_first():
    words = [f"w{i}" for i in range(12)]
    assert content_words(words) == words[:10]
    assert content_words(["a", *words, *words], limit=3) == words[:3]
    assert content_words(["the", "of", "it"], limit=2) == ["the", "of"]


def test_stop_words_are_words_of_the_tokeniser():
    assert all(tokenise(word) == [word] for word in stop_words())


def test_real_bags(coco_directory):
    captions = [c.text for c in read_captions(coco_directory / f"{COCO_TEST}.gz") if c.text]
    bags = [content_words(tokenise(caption)) for caption in captions]
    assert 5 < sum(map(len, bags)) / len(bags) < 6
    assert all(1 <= len(bag) <= 10 for bag in bags)
    assert not any(stop_words().intersection(bag) for bag in bags)
