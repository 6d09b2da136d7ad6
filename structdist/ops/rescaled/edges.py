"""Transitions ready for products, their gradients, and the columns that products cannot do."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, in_chain
from structdist.ops.edges import EdgeForm, edges_at, edges_into
from structdist.ops.rescaled.state import (
    Filtered,
    column_peaks,
    scaled_exp,
    shifted_values,
    surprisals,
    value_shift,
)
from structdist.semirings import softmax

# Sums below are redone in log space; the same numbers as trust<T>() in csrc/chain.h.
TRUST = {torch.float32: 1e-20, torch.float64: 1e-150}


class Edges:
    """Transitions and, optionally, what is carried along them, ready for products."""

    def __init__(
        self, transitions: Tensor, values: Tensor | None = None, *, surprisal: bool = False
    ) -> None:
        self.values, self.surprisal = values, surprisal
        self.peak = column_peaks(transitions)  # [..., K]
        self.weight = scaled_exp(transitions)
        self.weighted_value: Tensor | None = None
        if surprisal:
            self.weighted_value = self.weight * surprisals(transitions, self.weight)
        elif values is not None:
            shifted = shifted_values(transitions, self.weight, values)
            self.weighted_value = self.weight * shifted
            self.shift = value_shift(transitions, values)  # [..., 1, K]

    def shift_at(self, t: int, incoming: Tensor) -> Tensor | float:
        """What products leave out of the mean into each state after step t: [1, K] or [N, K]."""
        if self.surprisal:
            trusted = incoming >= TRUST[incoming.dtype]
            return torch.where(trusted, incoming, 1.0).log().double()
        return 0.0 if self.values is None else edges_at(self.shift, t).squeeze(-2).double()

    def mean_into(self, t: int, means: Tensor, w: Tensor, state: Tensor, item: Tensor) -> Tensor:
        """[M, K]: w times (mean before plus what the edge adds), for some states after step t."""
        if self.surprisal:
            return w * means + torch.special.entr(w)
        added = 0.0 if self.values is None else edges_into(self.values, t, state, item)
        return torch.where(w > 0, w * (means + added), 0.0)

    def peak_at(self, t: int) -> Tensor:
        return edges_at(self.peak.unsqueeze(-2), t).squeeze(-2)


def times(rows: Tensor, matrix: Tensor) -> Tensor:
    """Rows [N, K] times one matrix [1, K, K] or each its own [N, K, K]."""
    if len(matrix) == 1:
        return rows @ matrix[0]
    return (rows.unsqueeze(-2) @ matrix).squeeze(-2)


def weights_of(log_alpha: Tensor, dtype: torch.dtype) -> Tensor:
    return log_alpha.to(dtype).exp()


def inverse_of(incoming: Tensor) -> Tensor:
    """1 / q where q is trusted, else 0."""
    trusted = incoming >= TRUST[incoming.dtype]
    return torch.where(trusted, incoming, 1.0).reciprocal() * trusted


def at_last_step(filtered: Filtered, lengths: Tensor, grad_log_z: Tensor) -> Tensor:
    """[N, T, K]: the gradient of log Z with respect to the last log_alpha of each chain."""
    num_steps = filtered.log_alpha.shape[1]
    is_last = torch.arange(num_steps, device=lengths.device) == lengths[:, None] - 1
    last = softmax(filtered.log_alpha[:, -1], -1) * grad_log_z[:, None]
    return (is_last.unsqueeze(-1) * last.unsqueeze(1)).to(filtered.incoming.dtype)


class Underflow:
    """The columns of each step whose sums are too small to trust; none on most chains."""

    def __init__(self, chain: Chain, filtered: Filtered) -> None:
        self.chain, self.filtered = chain, filtered
        possible = filtered.log_alpha > -torch.inf
        self.mask = (filtered.incoming < TRUST[chain.emissions.dtype]) & possible
        self.mask &= in_chain(chain.lengths, self.mask.shape[1]).unsqueeze(-1)
        self.any = bool(self.mask[:, 1:].any())

    def at(self, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """Chains [M] and states [M] at step t, and float64 probabilities [M, K] before them."""
        item, state = self.mask[:, t].nonzero(as_tuple=True)
        before = self.filtered.log_alpha[item, t - 1]
        moves = before + edges_into(self.chain.transitions, t - 1, state, item)
        return item, state, softmax(moves, -1)


class EdgeGrads:
    """Gradients of edges, summed as the form of the transitions asks."""

    def __init__(self, like: Tensor) -> None:
        self.form, self.total = EdgeForm.of(like), torch.zeros_like(like)

    def _at(self, t: int) -> Tensor:
        return self.total[:, t] if self.form is EdgeForm.PER_STEP else self.total

    def outer(self, before: Tensor, after: Tensor) -> Tensor:
        """Products of rows [N, K]: [N, K, K], or their sum [1, K, K] if chains share edges."""
        if self.form is EdgeForm.SHARED:
            return (before.T @ after).unsqueeze(0)
        return before.unsqueeze(-1) * after.unsqueeze(-2)

    def add(self, t: int, grad: Tensor) -> None:
        """Add a gradient of the shape that `outer` gives."""
        self._at(t).add_(grad.squeeze(0) if self.form is EdgeForm.SHARED else grad)

    def add_columns(self, t: int, item: Tensor, state: Tensor, columns: Tensor) -> None:
        """Columns [M, K] into the given states [M] of the given chains [M]."""
        into = self._at(t).transpose(-1, -2)
        index = (state,) if self.form is EdgeForm.SHARED else (item, state)
        into.index_put_(index, columns, accumulate=True)
