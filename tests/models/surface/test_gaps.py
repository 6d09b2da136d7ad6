"""Where a word is left out, what needs it goes too, and nothing else."""

from __future__ import annotations

import pytest

from models.surface.text import GAP, Kind, Piece, close_gaps

CLOSED = {
    "a _ pub": "a pub",
    "_ is good": "is good",
    "_ 's food": "food",
    "_ % off": "off",
    "good _ , cheap": "good , cheap",
    "good , _ , cheap": "good , cheap",
    "good , _ .": "good .",
    "good . _ . bad .": "good . bad .",
    "good ! _ , bad .": "good ! bad .",
    "_ , good": "good",
    "a pub near _ .": "a pub .",
    "a pub , and near the _ . it": "a pub . it",
    "a pub in the _": "a pub",
    "pub ( _ ) .": "pub .",
    'the " _ " sign': "the sign",
    'a pub called " _ " .': "a pub .",
    "pub ( near _ , cheap )": "pub ( cheap )",
    'reads " stop , _ "': 'reads " stop "',
    '_ " stop "': '" stop "',
    "bar / _ .": "bar .",
    "_ / bar": "bar",
    "_ _": "",
    "_ .": "",
    "near _ is good": "near is good",
}


def pieces_of(text: str) -> list[Piece]:
    return [GAP if word == "_" else Piece(word) for word in text.split()]


@pytest.mark.parametrize(("text", "expected"), CLOSED.items())
def test_examples(text, expected):
    assert close_gaps(pieces_of(text)) == pieces_of(expected)


@pytest.mark.parametrize("text", [", , near . ( ) 's a", '" " ; . . the', ""])
def test_a_text_without_gaps_stays(text):
    assert close_gaps(pieces_of(text)) == pieces_of(text)


def test_values_stay():
    near = Piece("near", Kind.VALUE)
    assert close_gaps([near, GAP, Piece(".")]) == [near, Piece(".")]
