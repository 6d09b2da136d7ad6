"""Chi-square tests: of counts against probabilities, of two counts, and of independence."""

from __future__ import annotations

import torch
from torch import Tensor

FEWEST_EXPECTED = 5.0  # cells that expect less are pooled into one


def goodness_of_fit(counts: Tensor, probabilities: Tensor) -> float:
    """p-value of counts [C] under probabilities [C]; 0 if something impossible was counted."""
    if counts[probabilities == 0].any():
        return 0.0
    expected = probabilities.double() * counts.sum()
    observed, expected = _pool(counts.double(), expected)
    return _p_value(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)


def same_distribution(first: Tensor, second: Tensor) -> float:
    """p-value of two counts [C] having come from one distribution."""
    expected = (first + second).double() * first.sum() / (first.sum() + second.sum())
    return independence(torch.stack([_pool(x.double(), expected)[0] for x in (first, second)]))


def independence(table: Tensor) -> float:
    """p-value of rows and columns of a contingency table of counts being independent."""
    table = table.double()
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    expected = table.sum(1, keepdim=True) * table.sum(0, keepdim=True) / table.sum()
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    return _p_value(((table - expected) ** 2 / expected).sum(), degrees)


def _pool(observed: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    rare = expected < FEWEST_EXPECTED
    if not rare.any():
        return observed, expected
    if expected[rare].sum() < FEWEST_EXPECTED:  # too little even pooled: left out
        return observed[~rare], expected[~rare]
    pooled = [torch.cat([x[~rare], x[rare].sum()[None]]) for x in (observed, expected)]
    return pooled[0], pooled[1]


def _p_value(statistic: Tensor, degrees: int) -> float:
    if degrees == 0:
        return 0.0  # all in one cell: as far from random as can be
    half = torch.tensor(degrees / 2, dtype=torch.float64)
    return torch.special.gammaincc(half, statistic.cpu() / 2).item()
