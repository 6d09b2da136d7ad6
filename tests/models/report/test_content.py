"""Content that contradicts itself is refused."""

from __future__ import annotations

import pytest

from models.report.content import Browser, Coloured, Grid, Output, TableChoice

SENTENCE = Coloured(("a", "b"), (0, 1))


def test_a_state_for_each_word():
    with pytest.raises(ValueError, match="2 words with 1 states"):
        Coloured(("a", "b"), (0,))


def test_rows_as_wide_as_the_header():
    with pytest.raises(ValueError, match="2 cells"):
        Grid(("a", "b"), (("x", 1), ("y",)))


@pytest.mark.parametrize("index", [-1, 1])
def test_outputs_name_a_template(index):
    table = TableChoice("t", (Output(index, "a b", SENTENCE.runs, ""),))
    with pytest.raises(ValueError, match=f"no template {index} among 1"):
        Browser(((0, 1),), (table,))
