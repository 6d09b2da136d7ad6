"""A table survives being written and read; a malformed one is refused with the reason."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.tables import format_table, parse_table, values_by_key

MALFORMED = {
    "": "nothing where a pair key[value] should be",
    "name[The Vaults], ": "nothing where a pair key[value] should be",
    "name[The Vaults": "the bracket after 'name' is not closed",
    "name[The Vaults], eatType[pub": "the bracket after 'eatType' is not closed",
    "name[The [Vaults]]": "the bracket after 'name' is not closed",
    "name[The Vaults, eatType[pub]": "the bracket after 'name' is not closed",
    "[The Vaults": "the bracket after '' is not closed",
    "[The Vaults]": "no key before [The Vaults]",
    "name[The Vaults], [pub]": "no key before [pub]",
    "name[ ]": "no value for 'name'",
    "The Vaults": "text outside brackets: 'The Vaults'",
    "a good name[The Vaults] pub": "text outside brackets: 'pub'",
    "name[The Vaults], pub": "text outside brackets: 'pub'",
    "name[The Vaults], pub, near[Zizzi]": "text outside brackets: 'pub'",
    "name[The Vaults]]": "text outside brackets: ']'",
    "]name[The Vaults]": "text outside brackets: ']name'",
    "name[The Vaults], , near[Zizzi]": "nothing where a pair key[value] should be",
    "name[The Vaults] eatType[pub]": "no comma before 'eatType[pub]'",
    "name[The Vaults]; eatType[pub]": "no comma before '; eatType[pub]'",
    "name[The Vaults], name[Zizzi]": "'name' is there twice",
}


def test_keys_keep_their_order():
    text = "name[The Vaults], customer rating[5 out of 5], area[city, centre]"
    expected = (("name", "The Vaults"), ("customer rating", "5 out of 5"), ("area", "city, centre"))
    assert parse_table(text) == expected


def test_white_space_around_does_not_count():
    assert parse_table(" a[ x ],b [y] ,\n c[z]\n") == (("a", "x"), ("b", "y"), ("c", "z"))


@pytest.mark.parametrize(("text", "message"), MALFORMED.items())
def test_malformed_tables(text, message):
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}.*; a table looks like"):
        parse_table(text)


words = st.text(st.characters(exclude_characters="[],", exclude_categories=["Cs"]), min_size=1)
cells = words.map(str.strip).filter(bool)


@given(st.dictionaries(cells, cells, min_size=1))
def test_what_is_written_is_read(pairs):
    table = tuple(pairs.items())
    assert parse_table(format_table(table)) == table


def test_white_space_without_end_is_read_in_one_go():
    """In time that grows with its length; with its square, this would take an hour."""
    with pytest.raises(ValueError, match="text outside brackets: 'x'"):
        parse_table("a[b]," + " " * 1_000_000 + "x")


def test_thousands_of_keys():
    table = tuple((f"key {i}", f"value {i}") for i in range(10_000))
    assert parse_table(format_table(table)) == table


@pytest.mark.parametrize("text", ["a[" * 50_000, "[" * 50_000 + "]" * 50_000, "a[b]x" * 50_000])
def test_a_long_mistake_is_told_in_short(text):
    with pytest.raises(ValueError, match="; a table looks like") as caught:
        parse_table(text)
    assert len(str(caught.value)) < 300


def test_values_by_key():
    tables = ["food[Thai], area[harbour]", "food[Greek]", "food[Greek], area[old town]"]
    expected = {"food": ["Greek", "Thai"], "area": ["harbour", "old town"]}
    assert values_by_key(map(parse_table, tables)) == expected
    assert values_by_key([()]) == {}
