"""Content that contradicts itself is refused."""

from __future__ import annotations

import pytest

from models.report.content import Grid, Report, coloured
from models.report.page import render


def test_a_state_for_each_word():
    with pytest.raises(ValueError, match="2 words with 1 states"):
        coloured(("a", "b"), (0,))


def test_rows_as_wide_as_the_header():
    grid = Grid(("a", "b"), (("x", 1), ("y",)))
    with pytest.raises(ValueError, match="shorter"):
        render(Report("t", comparison=grid))
