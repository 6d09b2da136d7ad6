"""Segments of templates, with phrases and without."""

from __future__ import annotations

import pytest

from models.templates.segments import Phrases, Segment, collapse, different, segments

SPLIT = Phrases([3, 3, 3, 5], [True, False, True, True])


def test_without_phrases_segments_are_runs():
    assert segments([3, 3, 3, 5]) == [Segment(3, 0, 3), Segment(5, 3, 4)]
    assert collapse([3, 3, 3, 5]) == (3, 5)


def test_phrases_of_the_same_state_are_two_segments():
    assert segments(SPLIT) == [Segment(3, 0, 2), Segment(3, 2, 3), Segment(5, 3, 4)]
    assert collapse(SPLIT) == (3, 3, 5)


def test_phrases_are_their_states_and_their_starts():
    assert list(SPLIT) == [3, 3, 3, 5]
    assert Phrases([3, 3, 3, 5], [1, 0, 1, 1]) == SPLIT
    assert hash(SPLIT) == hash(Phrases([3, 3, 3, 5], [1, 0, 1, 1]))
    assert Phrases([3, 3, 3, 5]) != SPLIT
    assert SPLIT != (3, 3, 3, 5)
    assert len({SPLIT, Phrases(SPLIT, SPLIT.starts), Phrases(SPLIT)}) == 2


def test_phrases_start_where_states_change_unless_told():
    assert Phrases([3, 3, 5]).starts == (True, False, True)
    assert Phrases([]).starts == ()
    with pytest.raises(ValueError, match="2 states, but 1 starts"):
        Phrases([1, 1], [True])


def test_templates_differ_in_their_phrases():
    assert different([Phrases([3, 3, 3, 5]), Phrases([3, 3, 3, 5]), SPLIT], 2) == [0, 2]
