"""Patterns match what a plain recursive matcher does; what cannot be read is quoted."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from models.errors import SettingError
from models.templates.patterns import parse_pattern
from models.templates.segments import collapse

NUM_STATES = 4
states = st.integers(0, NUM_STATES - 1)
templates = st.lists(states, max_size=12)
several = st.lists(states, min_size=1, max_size=3, unique=True).map(lambda s: "|".join(map(str, s)))
pieces = st.one_of(st.sampled_from("*?*"), several, several.map("!{}".format))


def one_state_matches(piece: str, state: int) -> bool:
    if piece == "?":
        return True
    named = str(state) in piece.removeprefix("!").split("|")
    return named != piece.startswith("!")


def plainly_matches(pattern: Sequence[str], template: Sequence[int]) -> bool:
    """The rule, word for word; both without repeats."""
    if not pattern:
        return not template
    head, rest = pattern[0], pattern[1:]
    if head == "*":
        return any(plainly_matches(rest, template[i:]) for i in range(len(template) + 1))
    if not template or not one_state_matches(head, template[0]):
        return False
    return plainly_matches(rest, template[1:])


def without_repeated_numbers(pattern: Sequence[str]) -> list[str]:
    return [p for i, p in enumerate(pattern) if not (p.isdigit() and i and pattern[i - 1] == p)]


@given(st.lists(pieces, min_size=1, max_size=7), templates)
@hypothesis_settings(max_examples=400)
def test_agrees_with_the_plain_matcher(pattern, template):
    expected = plainly_matches(without_repeated_numbers(pattern), collapse(template))
    assert parse_pattern(" ".join(pattern), NUM_STATES)(template) == expected


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("4 7", ["4 7", "4 4 7 7 7"], ["4", "4 7 1", "1 4 7", "4 1 7", ""]),
        ("* 4 7 *", ["4 7", "1 4 4 7", "4 1 4 7 2"], ["7 4", "4 1 7"]),
        ("4 * 7", ["4 7", "4 1 2 7"], ["4", "7", "4 7 4"]),
        ("? ?", ["1 2", "1 1 2"], ["1", "1 1", "1 2 1"]),
        ("3|5 1", ["3 1", "5 1"], ["3 5 1", "1 3"]),
        ("!3", ["0", "19 19"], ["3", "0 1", ""]),
        ("!3|5 *", ["4 3", "4"], ["3 4", "5", ""]),
        ("*", ["", "1", "1 2"], []),
        ("* 4 * 4 *", ["4 1 4"], ["4", "4 4"]),
        ("* 1 2 * 2 1", ["1 2 3 2 1", "1 2 1 2 1"], ["1 2 1"]),
    ],
)
def test_examples(pattern, matching, others):
    parsed = parse_pattern(pattern, 20)
    assert all(parsed(states(template)) for template in matching)
    assert not any(parsed(states(template)) for template in others)


def states(template: str) -> list[int]:
    return [int(state) for state in template.split()]


@given(templates.filter(bool))
def test_a_template_is_a_pattern_that_finds_it(template):
    assert parse_pattern(" ".join(map(str, template)), NUM_STATES)(template)


@pytest.mark.parametrize("text", ["3,5", "3, 5", " 3  5 ", "3\t,5,", "03 5"])
def test_spaces_and_commas_separate(text):
    assert parse_pattern(text, 6)([3, 3, 5])


@pytest.mark.parametrize("num_states", [300, 70_000])
def test_many_states(num_states):
    last = num_states - 1
    pattern = parse_pattern(f"* !{last} {last}", num_states)
    assert pattern([last, 0, last])
    assert not pattern([last])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 x 2", "'x' in the pattern '1 x 2' cannot be read"),
        ("1 | 2", "'|' in the pattern '1 | 2' cannot be read"),
        ("1 ** 2", "'**' in the pattern '1 ** 2' cannot be read"),
        ("-1", "'-1' in the pattern '-1' cannot be read"),
        ("!", "'!' in the pattern '!' cannot be read"),
        ("1|!2", "'1|!2' in the pattern '1|!2' cannot be read"),
        ("²", "'²' in the pattern '²' cannot be read"),
        ("1 4", "'4' in the pattern '1 4': there is no state 4"),
        ("1 !2|9", "'!2|9' in the pattern '1 !2|9': there is no state 9"),
        ("!0|1|2|3", "'!0|1|2|3' in the pattern '!0|1|2|3' leaves no state"),
        (" , ", "the pattern of states is empty"),
    ],
)
def test_what_cannot_be_read_is_quoted(text, message):
    possible = ".*; possible are states from 0 to 3, "
    with pytest.raises(SettingError, match=f"^{re.escape(message)}{possible}"):
        parse_pattern(text, NUM_STATES)


def test_a_hard_pattern_takes_no_longer():
    """Trying all places of all its parts would take hours."""
    pattern = parse_pattern("* 1 " * 40 + "* 2", NUM_STATES)
    started = time.perf_counter()
    assert not pattern([0, 1] * 500)
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    ("template", "collapsed"), [([], ()), ([1], (1,)), ([1, 1, 2, 2, 3, 1], (1, 2, 3, 1))]
)
def test_collapse(template, collapsed):
    assert collapse(template) == collapsed
