"""Which keys a sentence quotes, in which order."""

from __future__ import annotations

import pytest

from models.data.tables import parse_table, quoted_order
from models.restaurants.corpus import synthetic_corpus
from models.templates.segments import collapse

TABLE = "name[The Vaults], eatType[pub], food[Indian], area[city centre], near[Raja Indian]"


def order(words: str, table: str = TABLE) -> tuple[str, ...]:
    return quoted_order(words.split(), parse_table(table))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("_name_ _name_ is a pub .", ("name", "eatType")),
        ("a pub called _name_ , near _near_ .", ("eatType", "name", "near")),
        ("in the city centre : the vaults", ("area", "name")),
        ("pub , _name_ , pub , _name_", ("eatType", "name")),
        ("in the city , in the centre", ()),
        ("", ()),
    ],
)
def test_examples(words, expected):
    assert order(words) == expected


def test_the_longer_value_wins():
    assert order("near raja indian") == ("near",)
    assert order("near raja indian , indian food") == ("near", "food")


def test_a_mark_goes_before_words():
    """A key with a mark does not take words, so that another key may."""
    assert order("pub food _eattype_") == ("eatType",)
    assert order("indian _area_ _food_ pub") == ("area", "food", "eatType")
    assert order("_name_ has indian food", "name[Indian], food[Indian]") == ("name", "food")


def test_the_first_key_takes_a_shared_value():
    assert order("high", "priceRange[high], customer rating[high]") == ("priceRange",)


def test_marks_of_keys_with_two_words():
    table = "priceRange[£20-25], customer rating[5 out of 5]"
    assert order("_customer_rating_ for £20-25", table) == ("customer rating", "priceRange")
    assert order("£20-25 , 5 out of 5", table) == ("priceRange", "customer rating")


def test_truth_values_are_quoted_by_their_mark_only():
    assert order("no pub", "familyFriendly[no], eatType[pub]") == ("eatType",)
    assert order("_familyfriendly_ pub", "familyFriendly[no], eatType[pub]")[0] == "familyFriendly"


def test_marks_of_other_tables_are_not_keys():
    assert order("_parking_ at the pub") == ("eatType",)


def test_the_built_in_corpus():
    """Its names, types, food, areas and places are quoted, in the order of the true slots."""
    keys = {"name", "eatType", "food", "area", "near"}
    for example in synthetic_corpus(100, 0, 0).splits["train"]:
        true = tuple(slot for slot in collapse(example.slots) if slot in keys)
        quoted = quoted_order(example.words, example.table)
        assert tuple(key for key in quoted if key in keys) == true, example.text
