"""Articles fit the values that they stand before."""

from __future__ import annotations

import pytest

from models.surface.text import GAP, Kind, Piece, correct_articles, indefinite_article

ARTICLES = {
    "a": ["French", "university", "unique", "union", "one-star", "Euro", "US", "£5", "100", "high"],
    "an": ["Italian", "uninviting", "onion", "hour", "honest", "émigré", "8", "£8", "11", "“Old”"],
}


@pytest.mark.parametrize(("article", "words"), ARTICLES.items())
def test_indefinite_articles(article, words):
    assert {word: indefinite_article(word) for word in words} == dict.fromkeys(words, article)


def corrected(*pieces: Piece) -> list[str]:
    return [piece.text for piece in correct_articles(pieces) if piece != GAP]


@pytest.mark.parametrize("written", ["a", "an"])
def test_it_goes_by_the_value(written):
    for value, article in (("Italian", "an"), ("French", "a")):
        pieces = [Piece(written), Piece(value, Kind.VALUE), Piece("pub")]
        assert corrected(*pieces) == [article, value, "pub"]


def test_it_goes_by_what_follows_a_gap():
    assert corrected(Piece("a"), GAP, GAP, Piece("eatery")) == ["an", "eatery"]
    assert corrected(Piece("a"), GAP) == ["a"]


@pytest.mark.parametrize("kind", [Kind.WORD, Kind.QUOTE])
def test_before_a_word_of_the_model_it_is_corrected_where_letters_tell(kind):
    for given, following, right in (
        *[("a", "italian", "an"), ("an", "low", "a"), ("an", "eatery", "an")],
        *[("a", "utensil", "a"), ("an", "hour", "an"), ("a", "european", "a")],
        *[("an", "umbrella", "an"), ("a", "one", "a"), ("a", ",", "a"), ("a", "8", "a")],
    ):
        assert corrected(Piece(given), Piece(following, kind)) == [right, following]
    assert corrected(Piece("the"), Piece("The Vaults", kind)) == ["the", "The Vaults"]


def test_an_article_is_not_doubled():
    vaults = Piece("The Vaults", Kind.VALUE)
    assert corrected(Piece("at"), Piece("the"), vaults) == ["at", "The Vaults"]
    assert corrected(Piece("a"), vaults) == ["a", "The Vaults"]
    assert corrected(Piece("the"), Piece("Theatre", Kind.VALUE)) == ["the", "Theatre"]
    assert corrected(Piece("a"), Piece("A Taste", Kind.VALUE)) == ["A Taste"]


def test_a_value_is_no_article():
    pieces = [Piece("A", Kind.VALUE), Piece("a", Kind.VALUE), Piece("Inn", Kind.VALUE)]
    assert corrected(*pieces) == ["A", "a", "Inn"]
