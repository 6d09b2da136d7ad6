"""Marks become values, whole and verbatim; what has no value becomes a gap."""

from __future__ import annotations

import pytest

from models.data.tables import delexicalise
from models.data.tokens import tokenise
from models.surface.text import GAP, Kind, relexicalise, with_gaps

TABLE = (
    ("name", "The Rice Boat"),
    ("near", "café Zürich  2.0"),
    ("customer rating", "5 out of 5"),
    ("area", "old Town"),
    ("familyFriendly", "yes"),
)


def texts(words: str, table=TABLE) -> list[str]:
    return [piece.text for piece in relexicalise(words.split(), table)]


def kinds(words: str, table=TABLE) -> list[Kind]:
    return [piece.kind for piece in relexicalise(words.split(), table)]


@pytest.mark.parametrize("run", [1, 2, 3, 7])
def test_a_run_of_a_mark_is_the_value_once(run):
    assert texts("at " + "_name_ " * run + ".") == ["at", "The Rice Boat", "."]
    assert kinds("at " + "_name_ " * run + ".") == [Kind.WORD, Kind.VALUE, Kind.WORD]


def test_runs_apart_are_all_replaced():
    assert texts("_name_ , _name_ _near_ _name_") == [
        *("The Rice Boat", ",", "The Rice Boat"),
        *("café Zürich  2.0", "The Rice Boat"),
    ]


def test_keys_of_two_words():
    assert texts("_customer_rating_ _customer_rating_") == ["5 out of 5"]


@pytest.mark.parametrize("word", ["_food_", "_familyfriendly_", "<unk>", "<s>", "<pad>"])
def test_what_cannot_be_written_is_a_gap(word):
    assert relexicalise([word], TABLE) == [GAP]


def test_signs_are_no_marks():
    assert texts("_ __ ___") == ["_", "__", "___"]


def test_written_words_take_the_form_of_the_table():
    words = "in the old town of old men , rated 5 out of 5 out"
    expected = ["in", "the", "old Town", "of", "old", "men", ",", "rated", "5 out of 5", "out"]
    assert texts(words) == expected
    assert kinds(words)[2] is Kind.QUOTE


def test_the_longest_value_is_taken():
    table = (("food", "Indian"), ("near", "Indian House"))
    assert texts("indian house , indian", table) == ["Indian House", ",", "Indian"]


def test_function_words_and_truth_values_are_not_quoted():
    table = (("name", "It"), ("near", "The One"), ("delivery", "Yes"))
    assert texts("it : yes , the one", table) == ["it", ":", "yes", ",", "The One"]
    assert texts("_name_ : _delivery_", table) == ["It", ":", ""]


def test_the_first_of_two_keys_with_one_mark_wins():
    assert texts("_name_", (("name", "a1"), ("Name", "b2"))) == ["a1"]


def test_without_a_table_only_vocabulary_marks_are_gaps():
    assert [piece.text for piece in with_gaps(["_name_", "<unk>", "a"])] == ["_name_", "", "a"]


def test_it_undoes_delexicalisation(synthetic_examples):
    for example in synthetic_examples:
        words = tokenise(example.text)
        pieces = relexicalise(delexicalise(words, example.table), example.table)
        assert tokenise(" ".join(piece.text for piece in pieces)) == words
