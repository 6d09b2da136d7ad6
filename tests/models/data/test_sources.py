"""Tables and bags of words become items, and items become numbers."""

from __future__ import annotations

import pytest

from models.data.sources import Item, SourceVocabulary, bag_items, table_items
from models.data.tables import delexicalise, parse_table
from models.data.tokens import tokenise
from models.data.vocabulary import UNKNOWN, Vocabulary

WORDS = Vocabulary(["_name_", "_near_", "pub", "city", "centre", "yes"])
KEYS = Vocabulary(["name", "eatType", "area", "near"])
BOTH = SourceVocabulary(WORDS, KEYS)


def items(table: str, vocabulary: Vocabulary = WORDS) -> list[Item]:
    return table_items(parse_table(table), vocabulary)


def test_an_item_for_each_word_of_a_value():
    assert items("area[city centre], eatType[pub]") == [
        Item("area", 1, "city", "city"),
        Item("area", 2, "centre", "centre"),
        Item("eatType", 1, "pub", "pub"),
    ]


def test_delexicalised_values_say_their_mark():
    """Once for each word, as in the sentence."""
    found = items("name[The Vaults]")
    assert found == [Item("name", 1, "_name_", "_name_"), Item("name", 2, "_name_", "_name_")]


def test_names_are_not_seen_even_where_they_are_said():
    """One tells no more than another."""
    lexicalised = Vocabulary(["the", "vaults"])
    assert items("near[The Vaults]", lexicalised) == [
        Item("near", 1, "_near_", "the"),
        Item("near", 2, "_near_", "vaults"),
    ]


def test_other_delexicalised_values_are_seen():
    """What kind of food it is can matter to the sentence."""
    with_mark = Vocabulary(["_food_", "indian"])
    assert items("food[Indian]", with_mark) == [Item("food", 1, "indian", "_food_")]


@pytest.mark.parametrize("answer", ["yes", "No"])
def test_answers_are_not_delexicalised(answer):
    with_mark = Vocabulary(["_familyfriendly_"])
    word = answer.lower()
    assert items(f"familyFriendly[{answer}]", with_mark) == [Item("familyFriendly", 1, word, word)]


def test_what_items_say_is_what_the_delexicalised_sentence_quotes():
    table = parse_table("name[Café Rouge], customer rating[5 out of 5]")
    words = delexicalise(tokenise("Café Rouge has 5 out of 5 stars"), table)
    says = [item.says for item in table_items(table, Vocabulary.of([words]))]
    assert says == ["_name_"] * 2 + ["_customer_rating_"] * 4
    assert [word for word in words if word in says] == says


def test_bags_hold_content_words_once():
    found = bag_items(["a", "dog", "and", "a", "cat", "and", "a", "dog", "."])
    assert found == [Item("", 1, "dog", "dog"), Item("", 1, "cat", "cat")]
    assert bag_items(["."]) == []


def test_numbers_of_items():
    encoded = BOTH.encode(items("name[The Vaults], eatType[pub], area[city centre]"))
    assert encoded.keys == [4, 4, 5, 6, 6]
    assert encoded.places == [1, 2, 1, 1, 2]
    assert encoded.words == encoded.says == [4, 4, 6, 7, 8]
    assert encoded.needed == [1, 1, 0, 0, 0]  # a pub can be called something else
    assert encoded.new_words == []


def test_new_words_have_numbers_beyond_the_vocabulary():
    """Each its own, and the same wherever it stands; the encoder sees that it knows none."""
    encoded = BOTH.encode(bag_items(["red", "pub", "bus"]) + bag_items(["bus"]))
    size = len(WORDS)
    assert encoded.new_words == ["red", "bus"]
    assert encoded.says == [size, 6, size + 1, size + 1]
    assert encoded.words == [UNKNOWN, 6, UNKNOWN, UNKNOWN]
    assert encoded.needed == [1, 0, 1, 1]
    assert encoded.keys == [UNKNOWN] * 4


def test_keys_that_were_never_seen():
    """The values can be copied all the same."""
    encoded = BOTH.encode(items("colour[pub red]"))
    assert encoded.keys == [UNKNOWN, UNKNOWN]
    assert encoded.says == [6, len(WORDS)]


@pytest.mark.parametrize(("word", "number"), [("pub", 6), ("bus", 11), ("red", UNKNOWN)])
def test_numbers_of_words(word, number):
    """Known, copied from the source, or neither."""
    assert BOTH.number(word, ["van", "bus"]) == number


def test_spelling_undoes_numbering():
    encoded = BOTH.encode(bag_items(["red", "pub", "bus"]))
    spelled = [*WORDS.words, *encoded.new_words]
    assert [spelled[number] for number in encoded.says] == ["red", "pub", "bus"]
