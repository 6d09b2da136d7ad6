"""Pearson's chi-square test of whole paths, with no other library than torch."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.enumeration import Outcomes
from tests.structures.structure import BaseExample

SMALLEST_EXPECTED = 5.0
NUM_DRAWS = 20_000  # of each sampler
ALPHA = 1e-5  # the least p-value that passes


def p_value(counts: Tensor, probs: Tensor) -> float:
    """Of counts [C] under probabilities [C]. Cells with few expected counts are pooled."""
    assert (counts[probs == 0] == 0).all(), "something impossible was drawn"
    expected = probs * counts.sum()
    rare = expected < SMALLEST_EXPECTED
    observed = torch.cat([counts[~rare], counts[rare].sum()[None]]).double()
    expected = torch.cat([expected[~rare], expected[rare].sum()[None]]).double()
    if expected[-1] < SMALLEST_EXPECTED:  # too little even pooled: left out
        observed, expected = observed[:-1], expected[:-1]
    if len(expected) < 2:
        return 1.0
    statistic = ((observed - expected) ** 2 / expected).sum()
    degrees = torch.tensor(len(expected) - 1.0, dtype=torch.float64)
    return torch.special.gammaincc(degrees / 2, statistic / 2).item()


def path_codes(paths: Tensor, num_codes: int) -> Tensor:
    """[...]: each path [..., T] of integers in range(C) as one number in 0..C^T - 1."""
    powers = num_codes ** torch.arange(paths.shape[-1])
    return (paths * powers).sum(-1)


def path_table(outcomes: Outcomes) -> Tensor:
    """[C^T]: the probability of every path code; 0 where there is no such path."""
    table = torch.zeros(outcomes.num_codes**outcomes.num_steps, dtype=torch.float64)
    table[path_codes(outcomes.paths, outcomes.num_codes)] = outcomes.probs
    return table


def path_p_value(paths: Tensor, outcomes: Outcomes) -> float:
    """Do paths [S, T] follow the distribution over whole paths?"""
    table = path_table(outcomes)
    counts = path_codes(paths, outcomes.num_codes).bincount(minlength=len(table))
    return p_value(counts, table)


def joint_p_value(left: Tensor, right: Tensor, p: Outcomes, q: Outcomes) -> float:
    """Are paths [S, T] of two structures independent, each with its own distribution?"""
    table = torch.outer(path_table(p), path_table(q))
    codes = path_codes(left, p.num_codes) * table.shape[1] + path_codes(right, q.num_codes)
    return p_value(codes.bincount(minlength=table.numel()), table.flatten())


def p_values(paths: Tensor, example: BaseExample) -> list[float]:
    """One for each structure of the batch, of paths [S, *B, T]."""
    singles = example.oracle().singles
    flat = paths.reshape(len(paths), len(singles), -1)
    return [path_p_value(flat[:, n], single) for n, single in enumerate(singles)]
