"""A bank gives back what was put in, finds what a plain loop finds, and survives being saved."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import RunError, SettingError
from models.templates.bank import StoredTemplate, TemplateBank
from models.templates.patterns import parse_pattern
from models.templates.segments import Phrases

TEMPLATES = [[], [0], [1, 1, 2], [1, 1, 2], [1, 1, 2], [0]]
KEY_SETS = [[], [], ["name"], ["name", "near"], ["name"], []]
STORED = [
    StoredTemplate(0, (0,), frozenset(), count=2, example=1),
    StoredTemplate(1, (1, 1, 2), frozenset({"name"}), count=2, example=2),
    StoredTemplate(2, (), frozenset(), count=1, example=0),
    StoredTemplate(3, (1, 1, 2), frozenset({"name", "near"}), count=1, example=3),
]

templates = st.lists(st.integers(0, 3), max_size=6)
key_sets = st.sets(st.sampled_from(["name", "near", "customer rating"]))
sentences = st.lists(st.tuples(templates, key_sets), max_size=30)
patterns = st.sampled_from([None, "*", "1 *", "* 2 !0 *", "? ?", "* 3|1"])
lengths = st.one_of(st.none(), st.integers(0, 6), st.sampled_from([(0, 3), (2, 2), (4, 9)]))


def bank_of(sentences: list[tuple[list[int], set[str]]]) -> TemplateBank:
    return TemplateBank([t for t, _ in sentences], [k for _, k in sentences], num_states=4)


@pytest.fixture
def bank():
    return TemplateBank(TEMPLATES, KEY_SETS, 20, "of these")


@pytest.fixture
def saved(bank, tmp_path):
    bank.save(tmp_path / "templates.json.gz")
    return tmp_path / "templates.json.gz"


def test_equal_templates_are_stored_once_and_the_most_frequent_first(bank):
    assert list(bank) == STORED
    assert [bank[number] for number in range(len(bank))] == STORED


def test_phrases_are_kept(tmp_path):
    """The same states, divided otherwise, are another template."""
    whole, split = Phrases([1, 1, 2], [1, 0, 1]), Phrases([1, 1, 2], [1, 1, 1])
    bank = TemplateBank([whole, split, whole], [[]] * 3, 4)
    bank.save(tmp_path / "bank.json.gz")
    loaded = TemplateBank.load(tmp_path / "bank.json.gz")
    for kept in (bank, loaded):
        assert [template.states for template in kept] == [whole, split]
        assert kept.of_sentences() == [whole, split, whole]


@given(sentences)
def test_nothing_is_lost(sentences):
    counts = Counter((tuple(template), frozenset(keys)) for template, keys in sentences)
    assert {(t.states, t.keys): t.count for t in bank_of(sentences)} == counts
    for stored in bank_of(sentences):
        places = [
            i for i, (t, k) in enumerate(sentences) if (tuple(t), k) == (stored.states, stored.keys)
        ]
        assert stored.example == places[0]


@given(sentences)
def test_each_sentence_knows_its_template(sentences):
    bank = bank_of(sentences)
    assert bank.of_sentences() == [tuple(template) for template, _ in sentences]
    stored = [bank[number] for number in bank.sentences]
    assert [template.keys for template in stored] == [keys for _, keys in sentences]


@given(sentences, st.none() | key_sets, lengths, patterns, st.none() | st.integers(0, 3))
def test_search_finds_what_a_loop_finds(sentences, keys, length, pattern, limit):
    bank = bank_of(sentences)
    low, high = length if isinstance(length, tuple) else (length, length)
    expected = [
        stored
        for stored in bank
        if (keys is None or stored.keys == keys)
        and (length is None or low <= len(stored.states) <= high)
        and (pattern is None or parse_pattern(pattern, 4)(stored.states))
    ]
    assert bank.search(keys, length, pattern, limit) == expected[:limit]
    assert sorted(expected, key=lambda t: (-t.count, t.number)) == expected


def test_search_by_keys_is_exact(bank):
    assert bank.search(keys=["near", "name"]) == [STORED[3]]
    assert bank.search(keys=[]) == [STORED[0], STORED[2]]
    assert bank.search(keys=["area"]) == []


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["name"], ["name", "name near", "", "area"]),
        (["near"], ["name near", "", "area", "name"]),
        (["name", "near", "food"], ["name near", "name", "", "area"]),
        (["food"], ["", "area", "name", "name near"]),  # none is alike: by the alphabet
        ([], ["", "area", "name", "name near"]),
    ],
)
def test_sets_of_keys_from_like_to_unlike(keys, expected):
    bank = TemplateBank([[0]] * 4, [["name"], ["area"], [], ["near", "name"]], 1)
    assert [" ".join(sorted(found)) for found in bank.key_sets_like(keys)] == expected


@given(sentences, key_sets)
def test_sets_that_share_most_come_first(sentences, keys):
    """The set itself, if there is one; then by the share of both that is shared, all of them."""
    found = bank_of(sentences).key_sets_like(keys)
    shared = [len(own & keys) / max(1, len(own | keys)) for own in found]
    assert shared == sorted(shared, reverse=True)
    assert sorted(map(sorted, found)) == sorted(map(sorted, {frozenset(k) for _, k in sentences}))
    assert keys not in found or found[0] == keys


@pytest.mark.parametrize(
    ("length", "numbers"),
    [(0, [2]), (1, [0]), (2, []), (3, [1, 3]), ((0, 1), [0, 2]), ((1, 3), [0, 1, 3])],
)
def test_search_by_length(bank, length, numbers):
    assert [stored.number for stored in bank.search(length=length)] == numbers


def test_a_pattern_does_not_look_into_the_next_template():
    bank = TemplateBank([[1, 2], [2, 3], [3]], [[], [], []], 4)
    assert [t.states for t in bank.search(pattern="* 2 3")] == [(2, 3)]
    assert [t.states for t in bank.search(pattern="!2 *")] == [(1, 2), (3,)]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"length": (3, 2)}, "no length is at least 3 and at most 2"),
        ({"pattern": "20"}, "there is no state 20; possible are states from 0 to 19"),
    ],
)
def test_what_cannot_be_searched(bank, asked, message):
    with pytest.raises(SettingError, match=message):
        bank.search(**asked)


@pytest.mark.parametrize("number", [-1, 4])
def test_no_such_template(bank, number):
    with pytest.raises(IndexError, match=f"there is no template {number}: there are 4"):
        bank[number]


@pytest.mark.parametrize("largest", [255, 256, 65536])
def test_there_may_be_many_states(largest):
    bank = TemplateBank([[0, largest]], [[]], largest + 1)
    assert bank.search(pattern=f"0 {largest}") == [bank[0]]


@pytest.mark.parametrize(
    ("template", "message"),
    [([0, 4], "state 4 is not one of 4"), ([-1], "state -1 is not one of 4, numbered from 0")],
)
def test_states_out_of_range(template, message):
    with pytest.raises(ValueError, match=message):
        TemplateBank([template], [[]], num_states=4)


def test_templates_and_key_sets_come_in_pairs():
    with pytest.raises(ValueError, match="shorter"):
        TemplateBank(TEMPLATES, KEY_SETS[:-1], 20)


def test_what_is_saved_is_loaded(bank, saved):
    loaded = TemplateBank.load(saved)
    assert list(loaded) == STORED
    assert (loaded.fingerprint, loaded.num_states) == ("of these", 20)
    assert loaded.of_sentences() == [tuple(template) for template in TEMPLATES]
    assert loaded.search(pattern="* 2") == bank.search(pattern="* 2") == [STORED[1], STORED[3]]
    assert [file.name for file in saved.parent.iterdir()] == ["templates.json.gz"]


def test_a_bank_of_captions_or_of_nothing_is_saved(tmp_path):
    for templates in ([[1, 2]], []):
        TemplateBank(templates, [[]] * len(templates), 3).save(tmp_path / "captions.json.gz")
        loaded = TemplateBank.load(tmp_path / "captions.json.gz")
        assert [list(stored.states) for stored in loaded.search(keys=[])] == templates


def assert_refused(path):
    with pytest.raises(RunError, match="templates RUN` again") as caught:
        TemplateBank.load(path)
    assert str(caught.value).startswith(f"{path} is damaged, or no bank of templates")


def test_a_missing_file(tmp_path):
    with pytest.raises(RunError, match=r"none.gz does not exist; run `python -m models templates"):
        TemplateBank.load(tmp_path / "none.gz")


def test_a_truncated_file(saved):
    whole = saved.read_bytes()
    for size in range(0, len(whole), 97):
        saved.write_bytes(whole[:size])
        assert_refused(saved)


def test_a_spoiled_file_never_gives_other_templates(saved):
    whole, rng = saved.read_bytes(), random.Random(0)
    refused = 0
    for _ in range(200):
        spoiled = bytearray(whole)
        spoiled[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        saved.write_bytes(spoiled)
        try:
            assert list(TemplateBank.load(saved)) == STORED
        except RunError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("templates", [[[0], []], [[99], ["name"]], [[], []], [[1, 1, 2], []]]),
        ("templates", [[[0], []], [[-1], ["name"]], [[], []], [[1, 1, 2], []]]),
        ("templates", [[[0], []]]),
        ("templates", [0, 1, 2, 3]),
        ("templates", None),
        ("sentences", [2, 0, 1, 4, 1, 0]),
        ("sentences", [2, 0, 1, -1, 1, 0]),
        ("sentences", [[2, 0, 1], [3, 1, 0]]),
        ("num_states", "many"),
        ("num_states", 2),
    ],
)
def test_parts_that_do_not_fit(saved, name, value):
    content = json.loads(gzip.decompress(saved.read_bytes()))
    saved.write_bytes(gzip.compress(json.dumps({**content, name: value}).encode()))
    assert_refused(saved)


def test_foreign_files(tmp_path):
    (tmp_path / "text.gz").write_text("templates")
    (tmp_path / "packed.gz").write_bytes(gzip.compress(b"templates"))
    (tmp_path / "list.gz").write_bytes(gzip.compress(b"[1, 2]"))
    for name in ("text.gz", "packed.gz", "list.gz"):
        assert_refused(tmp_path / name)
