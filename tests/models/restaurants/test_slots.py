"""What sentences of the built-in corpus say, checked against its true slots and on edited ones."""

from __future__ import annotations

from collections import Counter

import pytest

from models.data.corpus import Example
from models.data.tables import Table, parse_table
from models.restaurants.corpus import synthetic_corpus
from models.restaurants.grammar import SLOT_OF_KEY, VALUES
from models.restaurants.slots import (
    corpus_restaurant_errors,
    expand,
    known_phrases,
    mentions,
    restaurant_errors,
    slot_order,
)
from models.templates.segments import collapse

EXAMPLES = [e for split in synthetic_corpus(2000, 500, 500).splits.values() for e in split]
SOME = EXAMPLES[::5]
CLOSED_KEYS = VALUES.keys() - {"name", "near"}


def said(text: str) -> list[tuple[str, str | None]]:
    return [(mention.slot, mention.value) for mention in mentions(text.split())]


def counts(table: Table, words: list[str] | tuple[str, ...]) -> tuple[int, int, int]:
    errors = restaurant_errors(table, words)
    return errors.missing, errors.wrong, errors.added


def without(example: Example, key: str) -> list[str]:
    """The sentence without the words that say the key's value."""
    pairs = zip(example.words, example.slots or (), strict=True)
    return [word for word, slot in pairs if slot != SLOT_OF_KEY[key]]


def with_value(table: Table, key: str, value: str) -> Table:
    return tuple((k, value if k == key else v) for k, v in table)


def test_the_corpus_has_no_errors():
    errors = corpus_restaurant_errors([e.table for e in EXAMPLES], [e.words for e in EXAMPLES])
    assert errors == (0, 0, 0, sum(len(e.table) for e in EXAMPLES))


def test_mentions_are_the_entries_of_the_table():
    for example in EXAMPLES:
        expected = {
            (SLOT_OF_KEY[key], value if key in CLOSED_KEYS else None)
            for key, value in example.table
        }
        assert {mention[:2] for mention in mentions(example.words)} == expected, example.text


def test_the_order_is_the_true_one():
    table_slots = set(SLOT_OF_KEY.values())
    for example in EXAMPLES:
        true = tuple(slot for slot in collapse(example.slots) if slot in table_slots)
        assert slot_order(example.words) == true, example.text


def test_another_value_is_one_error():
    found = Counter(
        counts(with_value(example.table, key, other), example.words)
        for example in SOME
        for key, value in example.table
        if key in CLOSED_KEYS
        for other in VALUES[key]
        if other != value
    )
    assert found.keys() == {(0, 1, 0)}
    assert found.total() > 4000


def test_a_key_less_is_one_error():
    found = Counter(
        counts(tuple(pair for pair in example.table if pair[0] != key), example.words)
        for example in SOME
        for key, _ in example.table
    )
    assert found.keys() == {(0, 0, 1)}


def test_a_key_more_is_one_error():
    found = Counter(
        counts((*example.table, (key, VALUES[key][0])), example.words)
        for example in SOME
        for key in VALUES.keys() - dict(example.table).keys()
    )
    assert found.keys() == {(1, 0, 0)}


def test_a_phrase_less_is_one_error():
    found = Counter(
        counts(example.table, without(example, key)) for example in SOME for key, _ in example.table
    )
    assert found.keys() == {(1, 0, 0)}


def test_a_phrase_more_is_one_error():
    """Each phrase of the grammar with each value, after a sentence that says nothing like it."""
    table, words = parse_table("name[Aurora]"), ["_name_", "is", "there", ","]
    others = [phrase for phrase in known_phrases() if phrase.meaning.slot != "name"]
    assert len(others) > 1000
    for phrase in others:
        assert counts(table, [*words, *phrase.words, "."]) == (0, 0, 1), phrase


def test_no_phrase_has_two_meanings():
    meanings = Counter(words for _, words, _ in known_phrases())
    assert set(meanings.values()) == {1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_name_ _name_ is near _near_ _near_ .", [("name", None), ("near", None)]),
        ("low rated , low priced", [("rating", "low"), ("price", "low")]),
        ("average prices and a high customer rating", [("price", "average"), ("rating", "high")]),
        ("an average price , an indian menu", [("price", "average"), ("food", "Indian")]),
        ("whose prices are high", [("price", "high")]),
        ("fast food for over £30 a head", [("food", "fast food"), ("price", "over £30")]),
        ("a coffee shop by the harbour", [("eatType", "coffee shop"), ("area", "harbour")]),
        ("where children are welcome", [("family", "yes")]),
        ("where children are not welcome", [("family", "no")]),
        ("is not far from _near_ and kid friendly", [("near", None), ("family", "yes")]),
        ("with no menu for kids", [("family", "no")]),
        ("with a menu for kids", [("family", "yes")]),
        ("", []),
    ],
)
def test_grammatical_text(text, expected):
    assert said(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("french . pub riverside £20-25", ["French", "pub", "riverside", "£20-25"]),
        ("3 out of 5 5 out of 5", ["3 out of 5", "5 out of 5"]),
        ("is low , a high , at average", []),
        ("is rated low .", ["low"]),
        ("for a low rating by prices", ["low"]),
        ("over £20 or £30", ["£20", "£30"]),
        ("and kids are not welcome", ["no"]),
        ("welcomes and is friendly", []),
        ("you are so welcome", []),
        ("in the city , in the town , with a menu", []),
        ("kid friendly and adults only", ["yes", "no"]),
    ],
)
def test_ungrammatical_text(text, expected):
    assert [value for _, value in said(text)] == expected


def test_the_order_has_each_slot_once():
    assert slot_order(["pub", "_near_", ",", "_name_", "pub"]) == ("eatType", "near", "name")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("french food at high prices", (1, 2, 0)),
        ("_name_ : italian food , low prices , high prices", (0, 0, 1)),
        ("_name_ : italian italian food at low prices", (0, 0, 0)),
        ("_name_ : french indian food", (1, 1, 1)),
    ],
)
def test_kinds_of_errors(text, expected):
    table = parse_table("name[Aurora], food[italian], priceRange[low]")
    assert counts(table, text.split()) == expected


def test_nothing_to_say():
    assert restaurant_errors((), ["there"]) == (0, 0, 0, 0)


def test_errors_of_a_corpus_add_up():
    tables = [parse_table("name[Aurora], food[French]"), parse_table("name[Nutmeg]")]
    errors = corpus_restaurant_errors(tables, [["_name_"], ["_name_", "pub"]])
    assert errors == (1, 0, 1, 3)
    assert errors.rate == pytest.approx(2 / 3)


def test_a_key_that_the_corpus_does_not_have():
    with pytest.raises(ValueError, match="no key 'parking'"):
        restaurant_errors((("parking", "free"),), ["there"])


def test_choices_are_made_in_every_way():
    texts = {" ".join(words) for words in expand("an [a|] {} [|from [b|c]]")}
    assert texts == {f"a{a} {{}}{end}" for a in (" a", "") for end in ("", " from b", " from c")}
