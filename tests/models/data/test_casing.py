"""Names keep their capitals, and sentences get theirs."""

from __future__ import annotations

import pytest

from models.data.corpus import Example
from models.data.tokens import MIN_USES, cased_tokens, learn_casing, starts_of_sentences, tokenise
from models.surface.text import raise_first_letter

SENTENCE = "Here I see Italian TV, at eBay's pub."


def plain(text: str) -> list[Example]:
    """An example without marks."""
    return [Example(tuple(tokenise(text)), text)]


def test_forms_within_sentences_are_learnt():
    expected = {"i": "I", "italian": "Italian", "tv": "TV", "ebay": "eBay"}
    assert learn_casing(plain(SENTENCE) * MIN_USES) == expected


def test_rare_words_are_not_learnt():
    assert learn_casing(plain(SENTENCE) * (MIN_USES - 1)) == {}


@pytest.mark.parametrize("text", ["Bob runs. Bob sits! Bob eats? Bob", '"Bob" runs. (Bob sits)'])
def test_the_first_word_of_a_sentence_tells_nothing(text):
    assert learn_casing(plain(text) * MIN_USES) == {}


@pytest.mark.parametrize(("raised", "expected"), [(2, {}), (3, {}), (4, {"pub": "Pub"})])
def test_the_majority_decides_and_a_tie_is_lower_case(raised, expected):
    assert learn_casing(plain("a pub") * 3 + plain("a Pub") * raised) == expected


def test_marked_words_are_not_learnt_from_examples():
    text = "At The Rice Boat in Rome."
    words = ("at", "_name_", "_name_", "_name_", "in", "rome", ".")
    examples = [Example(words, text)] * MIN_USES
    assert learn_casing(examples) == {"rome": "Rome"}
    assert "rice" in learn_casing(plain(text) * MIN_USES)


def test_words_cut_off_are_not_learnt():
    examples = [Example(("in", "rome"), "In Rome, Italy")] * MIN_USES
    assert learn_casing(examples) == {"rome": "Rome"}


def test_examples_of_the_built_in_corpus(synthetic_examples):
    nationalities = {"Japanese", "English", "French", "Chinese", "Indian", "Italian"}
    assert set(learn_casing(synthetic_examples).values()) == nationalities


@pytest.mark.parametrize("text", ["IT'S It’s CAFE\u0301 £20-25", SENTENCE])  # noqa: RUF001
def test_cased_tokens_are_those_of_the_tokeniser(text):
    assert [token.lower() for token in cased_tokens(text)] == tokenise(text)
    assert "".join(cased_tokens(SENTENCE)) == SENTENCE.replace(" ", "")


def test_starts():
    words = tokenise('"a (b.) c, 5!? d')
    starts = [w for w, s in zip(words, starts_of_sentences(words), strict=True) if s]
    assert starts == ["a", "c", "d"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("good", "Good"),
        ("élan", "Élan"),
        ("coffee shop", "Coffee shop"),
        ("eBay", "eBay"),
        ("£20 and up", "£20 and up"),
        ("5-star", "5-star"),
        ("ßa", "ßa"),
        ("", ""),
    ],
)
def test_raising(text, expected):
    assert raise_first_letter(text) == expected
