"""Spaces are set as a careful writer sets them, and the words can be read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.tokens import tokenise
from models.surface.text import detokenise

TEXTS = [
    "the vaults is a pub.",
    "it's near cambridge's cafe, isn't it?",
    "cheap; good: yes! (really)",
    "family-friendly, £20-25 or £20-£25.",
    "good - but 100% of 1,000 at 12:30.",
    'a sign "no entry" and "stop".',
    "a 5-star 'café rouge', rated 'high'.",
    "the wrestlers' food",
    "the wrestlers' food is 'good'.",
    "so... and/or 3/5 [sic] the #41 {bus}",
    "it costs 20£, or $ 5",
    'unpaired "words',
    "salt & pepper",
]
APART = {"£ 20": "£ 20", "12 : 30": "12: 30", "1 , 000": "1, 000", "' s": "' s", "well -": "well -"}


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back(text):
    assert detokenise(tokenise(text)) == text


@pytest.mark.parametrize(("words", "text"), APART.items())
def test_words_that_would_merge_stay_apart(words, text):
    assert detokenise(words.split()) == text


def test_a_word_may_be_a_phrase():
    assert detokenise(["(", "The  Vaults", "'s", ")"]) == "(The  Vaults's)"


def test_nothing_is_no_text():
    assert detokenise([]) == ""


@given(st.text(alphabet="as1 '\"-.,:%/()£é\n"))
def test_words_come_back(text):
    words = tokenise(text)
    assert tokenise(detokenise(words)) == words


def test_words_of_the_built_in_corpus_come_back(synthetic_examples):
    words = [tokenise(example.text) for example in synthetic_examples]
    assert [tokenise(detokenise(w)) for w in words] == words
    assert [detokenise(w) for w in words] == [e.text.lower() for e in synthetic_examples]


def test_words_of_real_sentences_come_back(e2e_dev_rows):
    """So does the text of nearly all, except for untidy spaces such as those in "food ,and"."""
    words = [tokenise(row.text) for row in e2e_dev_rows]
    texts = [detokenise(w) for w in words]
    assert [tokenise(text) for text in texts] == words
    expected = [" ".join(row.text.lower().split()) for row in e2e_dev_rows]
    same = sum(text == other for text, other in zip(texts, expected, strict=True))
    assert same / len(texts) > 0.98
