"""Numbers as text."""

from __future__ import annotations

import math

import pytest

from models.report.numbers import cell_text, decimal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (41.23456, "41.235"),
        (-1234.5, "-1,234.500"),
        (0.001, "0.001"),
        (0.00012345, "0.000123"),
        (1234567.0, "1.23e+06"),
        (math.nan, "not a number"),
        (math.inf, "∞"),
        (-math.inf, "\N{MINUS SIGN}∞"),
    ],
)
def test_decimal(value, text):
    assert decimal(value) == text


@pytest.mark.parametrize(("value", "text"), [(12345, "12,345"), (1.5, "1.500"), ("a", "a")])
def test_cells(value, text):
    assert cell_text(value) == text
