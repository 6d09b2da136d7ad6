"""The built-in corpus is what it says it is, and not easy.

Figures in these tests are of the default corpus, seed 0.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from itertools import combinations, groupby, permutations

import pytest

from models.data.corpus import Example
from models.data.tables import delexicalise, parse_table
from models.data.tokens import tokenise
from models.restaurants.corpus import split_of, synthetic_corpus
from models.restaurants.grammar import PLANS, SLOT_OF_KEY, SLOTS, VALUES
from models.templates.segments import collapse

CORPUS = synthetic_corpus()
TRAIN = CORPUS.splits["train"]
EXAMPLES = [example for split in CORPUS.splits.values() for example in split]
FAMILY_CUES = {  # a text with a cue of "no" says no; else one with a cue of "yes" says yes
    "no": (
        *("adults only", "not family", "not child", "not kid", "not suitable", "not welcome"),
        *("no place for", "no menu for"),
    ),
    "yes": ("family", "families", "child", "kid"),
}
TABLE_SLOTS = set(SLOT_OF_KEY.values())


def spans(example: Example) -> list[tuple[str, str]]:
    """Each run of one slot, and its words."""
    pairs = zip(example.slots or (), example.words, strict=True)
    runs = groupby(pairs, key=lambda pair: pair[0])
    return [(slot, " ".join(word for _, word in run)) for slot, run in runs]


def delexicalised_table(example: Example) -> tuple[tuple[str, str], ...]:
    return tuple((key, "" if key in ("name", "near") else value) for key, value in example.table)


def family_answer(text: str) -> str | None:
    """What a text says about families."""
    return next((v for v in ("no", "yes") if any(c in text for c in FAMILY_CUES[v])), None)


def test_sizes_and_name():
    assert CORPUS.name == "synthetic"
    sizes = {name: len(split) for name, split in CORPUS.splits.items()}
    assert sizes == {"train": 6000, "dev": 500, "test": 500}
    assert 150 <= len(CORPUS.vocabulary) <= 300
    lengths = [len(example.words) for example in EXAMPLES]
    assert min(lengths) == 8
    assert max(lengths) == 24
    assert 15 <= sum(lengths) / len(lengths) <= 17


def test_the_same_seed_gives_the_same_sentences():
    small = synthetic_corpus(20, 5, 5)
    assert small.splits["train"] == TRAIN[:20]
    assert synthetic_corpus(20, 5, 5, seed=1).splits["train"] != small.splits["train"]


def test_the_corpus_is_the_one_that_results_were_measured_on():
    text = "\n".join(f"{e.text} {e.group} {e.words} {e.slots}" for e in EXAMPLES)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "71f9233aff8d7354"


def test_every_word_has_a_known_slot():
    for example in EXAMPLES:
        assert example.slots is not None
        assert len(example.words) == len(example.slots)
    assert {slot for example in EXAMPLES for slot in example.slots or ()} == set(SLOTS)


def test_the_slots_of_the_table_are_the_slots_of_the_sentence():
    for example in EXAMPLES:
        stated = [slot for slot, _ in spans(example) if slot in TABLE_SLOTS]
        assert sorted(stated) == sorted(SLOT_OF_KEY[key] for key, _ in example.table)


def test_words_are_the_text_without_names():
    for example in EXAMPLES:
        names = [(key, value) for key, value in example.table if key in ("name", "near")]
        assert tuple(delexicalise(tokenise(example.text), names)) == example.words


def test_values_can_be_found_in_the_text():
    for example in EXAMPLES:
        text, table = example.text.lower(), dict(example.table)
        assert family_answer(text) == table.pop("familyFriendly", None), example.text
        for key, value in table.items():
            assert value in VALUES[key]
            assert value.lower() in text


def test_the_group_is_the_table():
    assert all(parse_table(example.group) == example.table for example in EXAMPLES)
    assert all(example.table[0][0] == "name" for example in EXAMPLES)


def test_splits_share_no_table_and_no_delexicalised_sentence():
    for one, other in combinations(CORPUS.splits.values(), 2):
        assert not {delexicalised_table(e) for e in one} & {delexicalised_table(e) for e in other}
        assert not {e.words for e in one} & {e.words for e in other}


def test_each_split_has_tables_of_its_own():
    for name, split in CORPUS.splits.items():
        assert {split_of(example.table) for example in split} == {name}


def test_names_have_one_to_three_words():
    for key in ("name", "near"):
        assert {len(value.split()) for value in VALUES[key]} == {1, 2, 3}
    assert not set(VALUES["name"]) & set(VALUES["near"])


def test_every_plan_has_a_place_for_every_slot():
    for plan in PLANS:
        places = " ".join((plan.front, plan.before, plan.after, plan.told)).split()
        assert sorted(places) == sorted(TABLE_SLOTS - {"name", "eatType"})
        assert len(plan.front.split()) <= 1


def test_slots_come_in_many_orders_and_some_are_rare():
    orders = Counter(
        tuple(slot for slot, _ in spans(example) if slot in TABLE_SLOTS) for example in TRAIN
    )
    assert len(orders) > 100
    assert max(orders.values()) > 50 * min(orders.values())
    before = {pair for order in orders for pair in combinations(order, 2)}
    free = TABLE_SLOTS - {"eatType", "food"}  # a noun, and what stands next to it
    assert before >= set(permutations(free, 2))


def test_there_are_many_templates():
    """More than 3,000, and the most frequent one has less than 1% of the sentences."""
    templates = Counter(collapse(example.slots) for example in TRAIN)
    assert len(templates) > 2000
    assert max(templates.values()) < len(TRAIN) / 100


def test_a_word_does_not_tell_its_slot():
    """The best lookup of a word's slot, even of the words it was made from, is wrong for 14%."""
    slots_of: dict[str, Counter[str]] = defaultdict(Counter)
    for example in TRAIN:
        for word, slot in zip(example.words, example.slots or (), strict=True):
            slots_of[word][slot] += 1
    right = sum(max(counts.values()) for counts in slots_of.values())
    total = sum(sum(counts.values()) for counts in slots_of.values())
    assert 0.80 < right / total < 0.90
    for word in ("the", "in", "with", "for", "a", "by", "that"):
        assert len(slots_of[word]) >= 4, word
    for word in ("low", "average", "high"):
        assert slots_of[word].keys() == {"price", "rating"}


@pytest.mark.parametrize("slot", ["price", "rating", "area", "family", "near", "food"])
def test_each_slot_is_said_in_many_ways(slot):
    phrases = Counter(words for e in TRAIN for other, words in spans(e) if other == slot)
    assert len(phrases) >= 40


def test_one_and_two_sentences():
    sentences = Counter(example.words.count(".") for example in EXAMPLES)
    assert sentences.keys() == {1, 2}
    assert 0.1 < sentences[2] / len(EXAMPLES) < 0.4
