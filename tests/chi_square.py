"""Pearson's chi-square test of whole paths, with no other library than torch."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.oracle import SingleChain

SMALLEST_EXPECTED = 5.0


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


def path_codes(paths: Tensor, num_states: int) -> Tensor:
    """[...]: each path [..., T] as one number in 0..K^T - 1."""
    powers = num_states ** torch.arange(paths.shape[-1])
    return (paths * powers).sum(-1)


def path_table(chain: SingleChain) -> Tensor:
    """[K^T]: the probability of every path code; 0 where a path is forbidden."""
    table = torch.zeros(chain.num_states**chain.num_steps, dtype=torch.float64)
    table[path_codes(chain.paths, chain.num_states)] = chain.probs
    return table


def path_p_value(paths: Tensor, chain: SingleChain) -> float:
    """Do paths [S, T] follow the chain's distribution over whole paths?"""
    table = path_table(chain)
    counts = path_codes(paths, chain.num_states).bincount(minlength=len(table))
    return p_value(counts, table)


def joint_p_value(left: Tensor, right: Tensor, p: SingleChain, q: SingleChain) -> float:
    """Are paths [S, T] of two chains independent, each with its own distribution?"""
    table = torch.outer(path_table(p), path_table(q))
    codes = path_codes(left, p.num_states) * table.shape[1] + path_codes(right, q.num_states)
    return p_value(codes.bincount(minlength=table.numel()), table.flatten())
