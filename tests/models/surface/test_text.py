"""Words become text that a careful writer would type."""

from __future__ import annotations

import pytest

from models.data.tables import delexicalise, parse_table
from models.data.tokens import learn_casing, tokenise
from models.surface.text import text_about

TABLE = parse_table(
    "name[The Rice Boat], food[Italian], near[café Zürich 2.0], eatType[coffee shop], "
    "area[old town], priceRange[£20-25], shop[eBay], owner[Smith & Co.], familyFriendly[yes]"
)
CASING = {"i": "I", "english": "English", "tv": "TV", "old": "Old"}

WRITTEN = {
    "_name_ _name_ is a _food_ _eattype_ .": "The Rice Boat is an Italian coffee shop.",
    "near _near_ _near_ 's pub": "Near café Zürich 2.0's pub",
    "_eattype_ . _eattype_ !": "Coffee shop. Coffee shop!",
    "_shop_ . _pricerange_ . good": "eBay. £20-25. Good",
    "an italian in the old town": "An Italian in the old town",
    "by _owner_ . it is": "By Smith & Co. It is",
    "by _owner_ , then": "By Smith & Co., then",
    "the _name_ , _name_ 's tv": "The Rice Boat, The Rice Boat's TV",
    "_customer_rating_ , it 's a _cuisine_ pub .": "It's a pub.",
    "a <unk> old pub near <unk> .": "An Old pub.",
    '" élan " ( i say )': '"Élan" (I say)',
    "<unk>": "",
}


@pytest.mark.parametrize(("words", "text"), WRITTEN.items())
def test_examples(words, text):
    assert text_about(words.split(), TABLE, CASING) == text


def test_captions():
    words = ["a", "man", "watches", "english", "tv", "<unk>", ".", "i", "see", "_it_", "."]
    assert text_about(words, (), CASING) == "A man watches English TV. I see _it_."


def test_the_built_in_corpus_is_written_as_it_was(synthetic_examples):
    casing = learn_casing(synthetic_examples)
    written = [text_about(e.words, e.table, casing) for e in synthetic_examples]
    assert written == [e.text for e in synthetic_examples]


def test_real_sentences_are_written_as_they_were(e2e_dev_rows):
    """Up to case, for writers disagree on it, and except for slips such as "a Italian"."""
    rows, same = e2e_dev_rows[::4], 0
    for row in rows:
        words = tokenise(row.text)
        same += tokenise(text_about(delexicalise(words, row.table), row.table, {})) == words
    assert same / len(rows) > 0.98
