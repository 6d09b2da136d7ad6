"""Transitions ready for products, their gradients, and the columns that products cannot do."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import (
    Chain,
    Filtered,
    column_peaks,
    edges_at,
    edges_into,
    in_chain,
    scaled_exp,
    shifted_values,
    value_shift,
)

# Sums below are redone in log space; the same numbers as trust<T>() in csrc/chain.h.
TRUST = {torch.float32: 1e-20, torch.float64: 1e-150}


class Edges:
    """Transitions and, optionally, values on them, ready for products."""

    def __init__(self, transitions: Tensor, values: Tensor | None = None) -> None:
        self.transitions, self.values = transitions, values
        self.peak = column_peaks(transitions)  # [..., K]
        self.weight = scaled_exp(transitions)
        if values is not None:
            shifted = shifted_values(transitions, self.weight, values)
            self.weighted_value = self.weight * shifted
            self.shift = value_shift(transitions, values)  # [..., 1, K]

    def shift_at(self, t: int) -> Tensor | float:
        """What was taken off the values into each state after step t: [1, K] or [N, K]."""
        return 0.0 if self.values is None else edges_at(self.shift, t).squeeze(-2).double()

    def peak_at(self, t: int) -> Tensor:
        return edges_at(self.peak.unsqueeze(-2), t).squeeze(-2)


def times(rows: Tensor, matrix: Tensor) -> Tensor:
    """Rows [N, K] times one matrix [1, K, K] or each its own [N, K, K]."""
    if len(matrix) == 1:
        return rows @ matrix[0]
    return (rows.unsqueeze(-2) @ matrix).squeeze(-2)


def weights_of(log_alpha: Tensor, dtype: torch.dtype) -> Tensor:
    return log_alpha.to(dtype).exp()


def inverse_of(arrival: Tensor) -> Tensor:
    """1 / q where q is trusted, else 0."""
    trusted = arrival >= TRUST[arrival.dtype]
    return torch.where(trusted, arrival, 1.0).reciprocal() * trusted


def at_last_step(filtered: Filtered, lengths: Tensor, grad_log_z: Tensor) -> Tensor:
    """[N, T, K]: the gradient of log Z with respect to the last log_alpha of each chain."""
    num_steps = filtered.log_alpha.shape[1]
    is_last = torch.arange(num_steps, device=lengths.device) == lengths[:, None] - 1
    last = torch.softmax(filtered.log_alpha[:, -1], -1) * grad_log_z[:, None]
    return (is_last.unsqueeze(-1) * last.unsqueeze(1)).to(filtered.arrival.dtype)


class Doubtful:
    """The columns of each step that need log space; none on most chains."""

    def __init__(self, chain: Chain, filtered: Filtered) -> None:
        self.chain, self.filtered = chain, filtered
        possible = filtered.log_alpha > -torch.inf
        self.mask = (filtered.arrival < TRUST[chain.emissions.dtype]) & possible
        self.mask &= in_chain(chain.lengths, self.mask.shape[1]).unsqueeze(-1)
        self.any = bool(self.mask[:, 1:].any())

    def at(self, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """Chains [M] and states [M] at step t, and float64 probabilities [M, K] before them."""
        item, state = self.mask[:, t].nonzero(as_tuple=True)
        before = self.filtered.log_alpha[item, t - 1]
        moves = before + edges_into(self.chain.transitions, t - 1, state, item)
        return item, state, torch.softmax(moves, -1)


class EdgeGrads:
    """Gradients of edges, summed as the form of the transitions asks."""

    def __init__(self, like: Tensor) -> None:
        self.total = torch.zeros_like(like)

    def _at(self, t: int) -> Tensor:
        return self.total if self.total.dim() < 4 else self.total[:, t]

    def outer(self, before: Tensor, after: Tensor) -> Tensor:
        """Products of rows [N, K]: [N, K, K], or their sum [1, K, K] if chains share edges."""
        if self.total.dim() == 2:
            return (before.T @ after).unsqueeze(0)
        return before.unsqueeze(-1) * after.unsqueeze(-2)

    def add(self, t: int, grad: Tensor) -> None:
        """Add a gradient of the shape that `outer` gives."""
        self._at(t).add_(grad.squeeze(0) if self.total.dim() == 2 else grad)

    def add_columns(self, t: int, item: Tensor, state: Tensor, columns: Tensor) -> None:
        """Columns [M, K] into the given states [M] of the given chains [M]."""
        into = self._at(t).transpose(-1, -2)
        index = (state,) if into.dim() == 2 else (item, state)
        into.index_put_(index, columns, accumulate=True)
