"""Values that a sentence quotes become marks of their keys, word for word."""

from __future__ import annotations

import pytest

from models.data.tables import delexicalise, key_mark, parse_table
from models.data.tokens import tokenise


def marked(text: str, table: str) -> str:
    return " ".join(delexicalise(tokenise(text), parse_table(table)))


@pytest.mark.parametrize(
    ("text", "table", "expected"),
    [
        (
            "The Vaults is a pub.",
            "name[The Vaults], eatType[pub]",
            "_name_ _name_ is a _eattype_ .",
        ),
        ("Rated 5 out of 5", "customer rating[5 out of 5]", "rated" + 4 * " _customer_rating_"),
        ("At £20-25.", "priceRange[£20-25]", "at _pricerange_ ."),
        ("Zizzi's: ZIZZI", "name[Zizzi]", "_name_ 's : _name_"),
        ("pubs and public houses", "eatType[pub]", "pubs and public houses"),
        ("The Vaults", "eatType[pub]", "the vaults"),
        ("", "eatType[pub]", ""),
    ],
)
def test_examples(text, table, expected):
    assert marked(text, table) == expected


def test_truth_values_stay():
    table = "familyFriendly[yes], food[no]"
    assert marked("yes , no children", table) == "yes , no children"


@pytest.mark.parametrize(
    "table", ["food[Indian], near[Raja Indian]", "near[Raja Indian], food[Indian]"]
)
def test_the_longer_value_wins(table):
    assert marked("Indian food near Raja Indian", table) == "_food_ food near _near_ _near_"


def test_values_do_not_overlap():
    assert marked("a b a b a", "name[a b a]") == "_name_ _name_ _name_ b a"
    assert marked("a b c", "name[a b], near[b c]") == "_name_ _name_ c"


def test_the_first_key_takes_a_shared_value():
    assert marked("high", "priceRange[high], customer rating[high]") == "_pricerange_"


def test_a_mark_is_one_word():
    """So that a delexicalised sentence can be written out and read again."""
    for key in ("name", "eatType", "customer rating"):
        assert tokenise(key_mark(key)) == [key_mark(key)]
