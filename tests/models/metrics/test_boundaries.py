"""Where templates and slots change."""

from __future__ import annotations

import pytest

from models.metrics.boundaries import Boundaries, boundary_recovery
from models.templates.segments import Phrases


@pytest.mark.parametrize(
    ("states", "slots", "expected"),
    [
        ([1, 1, 2, 2], "aabb", (1, 1)),
        ([1, 2, 3, 4], "aabb", (1 / 3, 1)),
        ([1, 1, 1, 1], "aabb", (1, 0)),
        ([1, 2, 2, 2], "aabb", (0, 0)),
        ([1, 1, 1, 1], "aaaa", (1, 1)),
        ([1], "a", (1, 1)),
        ([], "", (1, 1)),
    ],
)
def test_one_sentence(states, slots, expected):
    assert boundary_recovery([states], [slots]) == pytest.approx(expected)


def test_phrases_have_boundaries_of_their_own():
    split = Phrases([1, 1, 1, 1], [True, False, True, False])
    assert boundary_recovery([split], ["aabb"]) == (1, 1)
    assert boundary_recovery([split], ["aaaa"]) == (0, 1)


def test_boundaries_are_pooled_and_ends_of_sentences_are_none():
    assert boundary_recovery([[1, 2], [1, 2, 3]], ["ab", "aab"]) == (2 / 3, 1)


def test_f1():
    assert Boundaries(0.5, 1.0).f1 == pytest.approx(2 / 3)
    assert Boundaries(0.0, 0.0).f1 == 0
