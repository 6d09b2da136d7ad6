"""The choice agrees with edit distances computed one by one."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from models.templates.segments import collapse, different

templates = st.lists(st.integers(0, 3), max_size=7).map(tuple)


@cache
def edits(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """By the definition: the fewest states added, left out or exchanged."""
    if not a or not b:
        return len(a) + len(b)
    kept = edits(a[1:], b[1:]) + (a[0] != b[0])
    return min(kept, edits(a[1:], b) + 1, edits(a, b[1:]) + 1)


def distance(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    a, b = collapse(a), collapse(b)
    return edits(a, b) / max(len(a), len(b), 1)


def plainly_different(templates: list[tuple[int, ...]], number: int) -> list[int]:
    chosen = [0]
    while len(chosen) < number:
        nearest = [min(distance(t, templates[c]) for c in chosen) for t in templates]
        if max(nearest) == 0:
            break
        chosen.append(nearest.index(max(nearest)))
    return chosen


@given(st.lists(templates, min_size=1, max_size=9), st.integers(1, 10))
@hypothesis_settings(max_examples=100)
def test_agrees_with_the_plain_choice(templates, number):
    assert different(templates, number) == plainly_different(templates, number)


def test_the_farthest_comes_next():
    near, far, middle = (1, 2, 3, 5), (6, 7, 8, 9), (1, 2, 8, 9)
    assert different([(1, 2, 3, 4), near, far, middle], 4) == [0, 2, 3, 1]


def test_of_equally_far_ones_the_earlier_comes_first():
    assert different([(0,), (1,), (2,), (3,)], 3) == [0, 1, 2]


def test_the_distance_is_relative_to_the_longer():
    """One edit of three is more than two of eight."""
    first = (0, 1, 2, 3, 4, 5, 6, 7)
    assert different([first, (0, 1, 2, 3, 4, 5, 8, 9), (1, 2, 3)], 2) == [0, 2]
    assert different([(1, 2, 3), (1, 2, 4), (1, 2, 3, 4, 5, 6)], 2) == [0, 2]


def test_runs_make_no_difference():
    assert different([(1, 2), (1, 1, 2), (1, 2, 2, 2), (3,)], 4) == [0, 3]


@pytest.mark.parametrize(("templates", "number"), [([], 3), ([(1,)], 0)])
def test_nothing_to_choose(templates, number):
    assert different(templates, number) == []


def test_empty_templates():
    assert different([(), (), (1,)], 3) == [0, 2]
    assert different([(), ()], 2) == [0]


def test_many_candidates():
    rng = random.Random(0)
    candidates = [tuple(rng.choices(range(20), k=25)) for _ in range(300)]
    chosen = different(candidates, 10)
    assert chosen[0] == 0
    assert len(set(chosen)) == 10
