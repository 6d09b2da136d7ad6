"""Closed forms for small tables, and laws that hold for any labels."""

from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.metrics.recovery import Recovery, recovery

CLOSE = 1e-12
WORDS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abcd")), min_size=1, max_size=60)


def compare(states: str, slots: str) -> Recovery:
    """One sentence, one character for each label."""
    return recovery([[int(state) for state in states]], [list(slots)])


def of_words(words: list[tuple[int, str]]) -> Recovery:
    return recovery([[state for state, _ in words]], [[slot for _, slot in words]])


@pytest.mark.parametrize(
    ("states", "slots", "expected"),
    [
        ("0011", "aabb", (1, 1, 1, 1)),
        ("0123", "aabb", (1, 1 / 2, 2 / 3, 1)),  # each slot in two states
        ("0000", "aabb", (0, 1, 0, 1 / 2)),  # a single state
        ("0011", "aaaa", (1, 0, 0, 1)),  # a single slot
        ("0000", "aaaa", (1, 1, 1, 1)),  # nothing to find, and nothing claimed
        ("0101", "aabb", (0, 0, 0, 1 / 2)),  # independent
        ("00112233", "ababcccc", (2 / 3, 1 / 2, 4 / 7, 3 / 4)),
    ],
)
def test_closed_forms(states, slots, expected):
    assert compare(states, slots) == pytest.approx(expected, abs=CLOSE)


def test_nmi_is_mutual_information_over_the_mean_entropy():
    """Three words of state 0, two of them in slot a; one word of state 1, in slot b."""
    h_state = -(3 / 4 * math.log(3 / 4) + 1 / 4 * math.log(1 / 4))
    h_slot = math.log(2)
    h_both = -(1 / 2 * math.log(1 / 2) + 2 * 1 / 4 * math.log(1 / 4))
    expected = 2 * (h_state + h_slot - h_both) / (h_state + h_slot)
    assert compare("0001", "aabb").v_measure == pytest.approx(expected, abs=CLOSE)


def test_states_may_be_rows_of_a_tensor():
    assert recovery(torch.tensor([[0, 0, 1]]), [["a", "b", "b"]]) == compare("001", "abb")


def test_sentences_are_pooled():
    assert recovery([[0, 0], [1], []], [["a", "b"], ["b"], []]) == compare("001", "abb")


@given(WORDS)
def test_all_numbers_lie_between_0_and_1(words):
    assert all(0 <= number <= 1 + CLOSE for number in of_words(words))


@given(WORDS, st.permutations(range(5)), st.permutations("abcd"), st.randoms())
def test_names_of_labels_and_order_of_words_do_not_matter(words, states, slots, rng):
    renamed = [(states[state], slots["abcd".index(slot)]) for state, slot in words]
    rng.shuffle(renamed)
    assert of_words(renamed) == pytest.approx(of_words(words), abs=CLOSE)


@given(WORDS)
def test_states_that_are_slots_are_perfect(words):
    perfect = [("abcd".index(slot), slot) for _, slot in words]
    assert of_words(perfect) == (1, 1, 1, 1)


@given(WORDS)
def test_exchanging_the_sides_exchanges_homogeneity_and_completeness(words):
    exchanged = of_words([("abcd".index(slot), "abcde"[state]) for state, slot in words])
    there = of_words(words)
    assert exchanged.homogeneity == pytest.approx(there.completeness, abs=CLOSE)
    assert exchanged.v_measure == pytest.approx(there.v_measure, abs=CLOSE)


@given(WORDS)
def test_finer_states_are_never_less_homogeneous(words):
    finer = [(2 * state + i % 2, slot) for i, (state, slot) in enumerate(words)]
    assert of_words(finer).homogeneity >= of_words(words).homogeneity - CLOSE
    assert of_words(finer).many_to_one >= of_words(words).many_to_one


def test_independent_states_recover_nothing():
    rng = random.Random(0)
    words = [(rng.randrange(10), rng.choice("abcd")) for _ in range(20_000)]
    assert of_words(words).v_measure < 0.002


def test_sentences_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="sentence 1 has 2 states but 1 slots"):
        recovery([[0], [0, 1]], [["a"], ["a"]])


def test_a_sentence_without_counterpart_is_refused():
    with pytest.raises(ValueError, match="sentence 1 has no slots"):
        recovery([[0], [1]], [["a"]])
    with pytest.raises(ValueError, match="sentence 0 has no states"):
        recovery([], [["a"]])


@pytest.mark.parametrize("nothing", [[], [[]]])
def test_no_words_are_refused(nothing):
    with pytest.raises(ValueError, match="no words"):
        recovery(nothing, nothing)
