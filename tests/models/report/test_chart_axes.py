"""Ticks, places and thinning."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.report.charts import Axis, finite_pieces, thinned

VALUES = st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0, 100, ["0", "20", "40", "60", "80", "100"]),
        (0, 4000, ["0", "1,000", "2,000", "3,000", "4,000"]),
        (0.1, 0.3, ["0.10", "0.15", "0.20", "0.25", "0.30"]),
        (-3, 2, ["-3", "-2", "-1", "0", "1", "2"]),
        (0, 5e7, ["0", "1e+07", "2e+07", "3e+07", "4e+07", "5e+07"]),
    ],
)
def test_ticks_are_round(low, high, labels):
    assert [label for _, label in Axis(low, high, 0, 1).ticks()] == labels


@given(VALUES)
def test_values_and_ticks_are_inside(values):
    axis = Axis.over(values, 200, 10)
    places = [axis.place(v) for v in values] + [axis.place(tick) for tick, _ in axis.ticks()]
    assert all(10 - 1e-3 <= place <= 200 + 1e-3 for place in places)
    assert len(axis.ticks()) <= 7


def test_ends_are_where_they_should_be():
    axis = Axis.over([2.0, 6.0], 200, 10)
    assert (axis.place(2.0), axis.place(4.0), axis.place(6.0)) == (200, 105, 10)


@given(VALUES)
def test_rounded_axes_hold_the_values(values):
    axis = Axis.over(values, 200, 10)
    wider = axis.rounded()
    assert wider.low <= axis.low
    assert wider.high >= axis.high
    assert len(wider.ticks()) <= 9


def test_rounded_axes_end_with_ticks():
    axis = Axis.over([60.014, 115.0], 0, 1).rounded()
    assert (
        [tick for tick, _ in axis.ticks()] == [axis.low, 80, 100, axis.high] == [60, 80, 100, 120]
    )


@pytest.mark.parametrize("value", [0.0, 7.25, -1e-9, 1e12])
def test_one_value_is_in_the_middle(value):
    axis = Axis.over([value, value], 0, 100)
    assert axis.place(value) == pytest.approx(50)
    assert axis.ticks()


def test_pieces_end_where_a_value_is_not_finite():
    points = ((60, 1.0), (0, 3.0), (20, math.nan), (40, 2.0), (80, math.inf))
    assert finite_pieces(points) == [[(0, 3.0)], [(40, 2.0), (60, 1.0)]]
    assert finite_pieces(((0, math.nan),)) == finite_pieces(()) == []


def test_thinning_keeps_ends_and_spikes():
    points = [(step, math.sin(step)) for step in range(10_000)]
    points[1234], points[8765] = (1234, 50.0), (8765, -50.0)
    kept = thinned(points, 100)
    assert len(kept) <= 202
    assert kept == sorted(kept)
    assert {points[0], points[1234], points[8765], points[-1]} <= set(kept)
    assert thinned(points[:200], 100) == points[:200]
