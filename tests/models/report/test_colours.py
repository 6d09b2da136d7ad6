"""Colours that can be read, and told apart."""

from __future__ import annotations

from colorsys import rgb_to_hls

import pytest

from models.report.colours import DAY, NIGHT, rgb, state_css
from tests.models.report.wcag import contrast

STATES = range(200)


def test_contrast_of_known_pairs():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.478, abs=1e-3)
    assert contrast((5, 50, 90), (5, 50, 90)) == 1


@pytest.mark.parametrize("look", [DAY, NIGHT])
def test_every_state_can_be_read(look):
    pairs = [(rgb(state, *look["ink"]), rgb(state, *look["wash"])) for state in STATES]
    assert min(contrast(ink, wash) for ink, wash in pairs) >= 4.5


@pytest.mark.parametrize("look", [DAY, NIGHT])
def test_hues_are_those_of_the_terminal(look):
    for state in STATES:
        hue = rgb_to_hls(*(channel / 255 for channel in rgb(state, *look["ink"])))[0]
        turn = (hue - state * 137.508 / 360) % 1
        assert min(turn, 1 - turn) < 0.01


def test_rules_by_day_and_by_night():
    css = state_css([7, 3, 7])
    assert css == state_css([3, 7])
    day, night = css.split("@media (prefers-color-scheme:dark)")
    assert day.count("{") == 2
    assert ".s3{--ink:#" in day
    assert ".s7{--ink:#" in night
    assert css.count("{") == css.count("}")
