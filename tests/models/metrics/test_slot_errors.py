"""Slot errors, on hand-written cases and on a real system's output."""

from __future__ import annotations

import csv
import gzip

import pytest

from models.data.tables import parse_table
from models.metrics.slot_errors import corpus_slot_errors, slot_errors

FULL = (
    "name[The Vaults], eatType[pub], food[Indian], priceRange[more than £30], "
    "customer rating[5 out of 5], area[city centre], familyFriendly[no], near[Raja Indian Cuisine]"
)
RIGHT = {
    "name[The Mill]": ["The Mill is here.", "Try Mill.", "the mill 's"],
    "near[Café Rouge]": ["It is near Cafe Rouge.", "Café Rouge's neighbour", "by CAFÉ ROUGE"],
    "eatType[pub]": ["a pub", "two pubs"],
    "eatType[coffee shop]": ["a coffee shop", "a coffee-shop", "a café"],
    "eatType[restaurant]": ["a restaurant"],
    "food[Fast food]": ["fast food", "fast-food", "Fast foods"],
    "food[English]": ["English food", "British food"],
    "food[Japanese]": ["sushi"],
    "priceRange[moderate]": [
        "mid-priced",
        "moderately priced",
        "£20-25",
        "£20 to £25",
        "20-25 pounds",
    ],
    "priceRange[£20-25]": ["between £20 and £25", "a moderate price range", "average prices"],
    "priceRange[less than £20]": [
        "under £20",
        "cheap",
        "prices are low",
        "low-priced",
        "inexpensive",
    ],
    "priceRange[cheap]": ["less than £20", "a cheap price range", "low cost"],
    "priceRange[more than £30]": ["over £30", "expensive", "£30 or more", "a high price range"],
    "priceRange[high]": ["high-priced", "more than £30", "the price range is quite high"],
    "customer rating[5 out of 5]": ["five star", "5/5", "highly rated", "a high customer rating"],
    "customer rating[high]": ["rated 5 out of 5", "its rating is high", "five out of five"],
    "customer rating[3 out of 5]": [
        "three stars",
        "3 out of 5 stars",
        "an average customer rating",
    ],
    "customer rating[average]": ["rated average by customers", "3-star", "averagely rated"],
    "customer rating[1 out of 5]": ["one star", "a low rating", "poorly rated", "1 of 5"],
    "customer rating[low]": ["customer ratings are low", "1 out of 5 customer rating", "low-rated"],
    "area[riverside]": ["by the river", "in riverside", "river side", "on the river bank"],
    "area[city centre]": [
        "in the city center",
        "the centre of the city",
        "town centre",
        "downtown",
    ],
    "familyFriendly[yes]": [
        "family friendly",
        "kid-friendly",
        "children are welcome",
        "for families",
        "not only good but family friendly",
    ],
    "familyFriendly[no]": [
        "not family friendly",
        "isn't kid friendly",
        "non-family-friendly",
        "no children",
        "children are not allowed",
        "adults only",
        "not suitable for families with children",
        "family-unfriendly",
    ],
}
SENTENCES = {
    "a low customer rating and a high price range": "priceRange[high], customer rating[low]",
    "high-priced, with a low rating": "priceRange[high], customer rating[low]",
    "Prices are high and the customer rating is low": "priceRange[high], customer rating[low]",
    "an average rating of 1 out of 5": "customer rating[1 out of 5]",
    "an average price of more than £30": "priceRange[more than £30]",
    "average prices, highly rated": "priceRange[moderate], customer rating[high]",
}


def counts(table: str, text: str) -> tuple[int, int, int]:
    errors = slot_errors(parse_table(table), text)
    return errors.missing, errors.wrong, errors.added


@pytest.mark.parametrize(("table", "text"), [(t, text) for t in RIGHT for text in RIGHT[t]])
def test_a_value_in_other_words(table, text):
    assert counts(table, text) == (0, 0, 0)


@pytest.mark.parametrize("table", RIGHT)
def test_a_missing_value(table):
    assert counts(table, "It is there.") == (1, 0, 0)


@pytest.mark.parametrize(("text", "table"), SENTENCES.items())
def test_an_adjective_belongs_to_its_noun(text, table):
    assert counts(table, text) == (0, 0, 0)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("name[The Mill]", "The Vaults is here."),
        ("near[Café Rouge]", "near The Bakers"),
        ("eatType[pub]", "a coffee shop"),
        ("food[Indian]", "Chinese food"),
        ("priceRange[cheap]", "an expensive place"),
        ("customer rating[low]", "rated 5 out of 5"),
        ("area[riverside]", "in the city centre"),
        ("familyFriendly[yes]", "not family-friendly"),
        ("familyFriendly[no]", "child friendly"),
    ],
)
def test_a_wrong_value(table, text):
    assert counts(table, text) == (0, 1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "near The Bakers",
        "a pub",
        "Italian food",
        "cheap",
        "rated 3 out of 5",
        "riverside",
        "no kids",
    ],
)
def test_an_added_value(text):
    assert counts("name[Aromi]", f"Aromi: {text}.") == (0, 0, 1)


def test_a_full_table():
    text = (
        "The Vaults is an expensive Indian pub in the city centre, near Raja Indian Cuisine. It "
        "has a 5 out of 5 rating and is not kid friendly."
    )
    errors = slot_errors(parse_table(FULL), text)
    assert errors == (0, 0, 0, 8)
    assert errors.rate == 0
    assert slot_errors(parse_table(FULL), "Yes.").rate == 1


def test_the_name_of_a_place_says_nothing_else():
    assert counts("name[Aromi], near[Raja Indian Cuisine]", "Aromi by Raja Indian Cuisine") == (
        0,
        0,
        0,
    )
    assert counts("name[Aromi], food[Indian]", "Aromi is near Raja Indian Cuisine") == (1, 0, 1)


def test_restaurant_is_never_an_error():
    assert counts("name[Aromi]", "Aromi is a restaurant") == (0, 0, 0)
    assert counts("name[Aromi], eatType[pub]", "Aromi is a restaurant") == (1, 0, 0)


def test_values_and_keys_that_e2e_does_not_know():
    table = "name[Chez Nous], food[Thai], parking[free of charge]"
    assert counts(table, "Chez Nous has Thai food, and parking free of charge") == (0, 0, 0)
    assert counts(table, "Chez Vous has Thai food") == (2, 0, 0)
    assert counts(table, "Chez Nous has French food, and parking free of charge") == (0, 1, 0)


def test_a_corpus_adds_up():
    tables = [parse_table("name[Aromi], food[French]"), parse_table("name[Zizzi]")]
    errors = corpus_slot_errors(tables, ["Aromi", "Zizzi is cheap"])
    assert errors == (1, 0, 1, 3)
    assert errors.rate == pytest.approx(2 / 3)


def test_real_texts(outputs_directory, tgen):
    """TGen forgets some values and makes up few; people forget more."""
    path = outputs_directory.parent / "e2e" / "testset_w_refs.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        pairs = [(parse_table(row["mr"]), row["ref"]) for row in csv.DictReader(file)]
    tables = list(dict.fromkeys(table for table, _ in pairs))
    system = corpus_slot_errors(tables, tgen)
    assert system.slots == 4352
    assert 0.02 < system.rate < 0.05
    assert system.wrong + system.added < 0.005 * system.slots
    people = corpus_slot_errors(*zip(*pairs[::4], strict=True))
    assert system.rate < people.rate < 0.11
