"""Where templates and slots change."""

from __future__ import annotations

import pytest

from models.metrics.boundaries import Boundaries, boundary_recovery


@pytest.mark.parametrize(
    ("starts", "slots", "expected"),
    [
        ([1, 0, 1, 0], "aabb", (1, 1)),
        ([1, 1, 1, 1], "aabb", (1 / 3, 1)),
        ([1, 0, 0, 0], "aabb", (1, 0)),
        ([1, 1, 0, 0], "aabb", (0, 0)),
        ([1, 0, 0, 0], "aaaa", (1, 1)),
        ([1, 0, 1, 0], "aaaa", (0, 1)),
        ([1], "a", (1, 1)),
        ([], "", (1, 1)),
    ],
)
def test_one_sentence(starts, slots, expected):
    assert boundary_recovery([starts], [slots]) == pytest.approx(expected)


def test_boundaries_are_pooled_and_ends_of_sentences_are_none():
    assert boundary_recovery([[1, 1], [1, 1, 1]], ["ab", "aab"]) == (2 / 3, 1)


def test_sentences_must_have_their_slots():
    with pytest.raises(ValueError, match="longer"):
        boundary_recovery([[1, 1]], ["abcd"])


def test_f1():
    assert Boundaries(0.5, 1.0).f1 == pytest.approx(2 / 3)
    assert Boundaries(0.0, 0.0).f1 == 0
