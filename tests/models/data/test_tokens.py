"""Words and punctuation come apart where a reader would part them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.tokens import tokenise

EXAMPLES = {
    "The Vaults is a pub.": "the vaults is a pub .",
    "It's near Cambridge's cafe.": "it 's near cambridge 's cafe .",
    "It isn't cheap, you'll see": "it isn't cheap , you'll see",
    "family-friendly, £20-25.": "family-friendly , £20-25 .",
    "£20-£25; £20.00 or 1,000?": "£20-£25 ; £20.00 or 1,000 ?",
    "3 out of 5 at 12:30": "3 out of 5 at 12:30",
    "a 5-star 'Café Rouge'": "a 5-star ' café rouge '",
    "The Wrestlers' food.It is": "the wrestlers ' food . it is",
    "good - but 20£...": "good - but 20 £ . . .",
    "$d costs $5": "$ d costs $5",
    "_name_ is\r\n  good": "_name_ is good",
}


@pytest.mark.parametrize(("text", "words"), EXAMPLES.items())
def test_examples(text, words):
    assert tokenise(text) == words.split()


def test_spellings_of_a_character_are_one():
    assert tokenise(unicodedata.normalize("NFD", "Café")) == ["café"]
    assert tokenise("it’s") == tokenise("it's")  # noqa: RUF001


def test_nothing_has_no_words():
    assert tokenise(" \n ") == []


@given(st.text(alphabet="as1 '-.,£é\n"))
def test_every_character_is_kept_in_order(text):
    assert "".join(tokenise(text)) == "".join(text.split())


@given(st.text(alphabet="as1 '-.,£é\n"))
def test_words_are_words_again(text):
    words = tokenise(text)
    assert tokenise(" ".join(words)) == words
