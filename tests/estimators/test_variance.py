"""The log variance ratio of estimates of a gradient."""

from __future__ import annotations

import math

import pytest
import torch

from structdist.estimators import log_variance_ratio


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ([[1.0], [3.0]], math.log(2 / 2)),
        ([[-1.0], [-5.0]], math.log(8 / 3)),
        ([[1.0, -1.0], [3.0, -5.0]], (math.log(1) + math.log(8 / 3)) / 2),
        ([[1.0, 7.0], [3.0, 7.0]], math.log(1)),  # the second never changes
        ([[1.0, 7.0], [3.0, -7.0]], math.log(1)),  # the second has no mean to compare with
    ],
)
def test_known_numbers(draws, expected):
    assert log_variance_ratio(torch.tensor(draws)) == pytest.approx(expected)


@pytest.mark.parametrize("draws", [[[1.0, 0.0]] * 3, [[1.0], [-1.0]]])
def test_nothing_to_measure(draws):
    assert math.isnan(log_variance_ratio(torch.tensor(draws)))


def test_tiny_gradients_do_not_underflow():
    draws = torch.tensor([[1e-30], [3e-30]])
    assert log_variance_ratio(draws) == pytest.approx(math.log(1e-30), rel=1e-5)
