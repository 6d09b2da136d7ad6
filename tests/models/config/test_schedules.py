"""Schedules go their way and then stay."""

from __future__ import annotations

import pytest

from models.config.schedules import Schedule


@pytest.mark.parametrize("epoch", [0, 0.5, 100])
def test_constant(epoch):
    assert Schedule(0.3).at(epoch) == 0.3
    assert Schedule(0.3, shape="geometric").at(epoch) == 0.3
    assert Schedule(0.3, epochs=10).at(epoch) == 0.3


@pytest.mark.parametrize(("epoch", "value"), [(0, 1), (1, 0.75), (2.5, 0.375), (4, 0), (9, 0)])
def test_linear(epoch, value):
    assert Schedule(1.0, 0.0, 4).at(epoch) == pytest.approx(value)


@pytest.mark.parametrize(("epoch", "value"), [(0, 1), (1, 0.1), (1.5, 0.1**1.5), (5, 0.01)])
def test_geometric(epoch, value):
    assert Schedule(1.0, 0.01, 2, shape="geometric").at(epoch) == pytest.approx(value)


def test_upwards():
    assert Schedule(0.0, 1.0, 2).at(1) == 0.5
    assert Schedule(1.0, 4.0, 2, shape="geometric").at(1) == pytest.approx(2)


def test_fractions_of_an_epoch():
    assert Schedule(1.0, 0.0, 0.5).at(0.25) == 0.5


def test_schedules_that_make_no_sense():
    with pytest.raises(ValueError, match="cannot take -1 epochs"):
        Schedule(1.0, 0.0, -1)
    with pytest.raises(ValueError, match="needs epochs"):
        Schedule(1.0, 0.0)
    for start, end in ((0.0, 1.0), (1.0, 0.0), (-1.0, None)):
        with pytest.raises(ValueError, match="positive start and end"):
            Schedule(start, end, 1, shape="geometric")


@pytest.mark.parametrize(("epoch", "value"), [(0, 1.0), (2.9, 1.0), (4, 0.5), (5, 0.0), (9, 0.0)])
def test_it_can_wait(epoch, value):
    assert Schedule(1.0, 0.0, epochs=2, after=3).at(epoch) == pytest.approx(value)


def test_it_can_jump():
    step = Schedule(1.0, 0.0, after=3)
    assert (step.at(2.99), step.at(3)) == (1.0, 0.0)
