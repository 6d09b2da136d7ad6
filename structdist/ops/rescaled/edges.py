"""Transitions ready for products, step by step and for all steps at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from structdist.ops.edges import EdgeForm, edges_into
from structdist.ops.finite import TRUST
from structdist.ops.rescaled.state import (
    column_peaks,
    scaled_exp,
    shifted_values,
    surprisals,
    value_shift,
)


class Edges:
    """Transitions and, optionally, what is carried along them, ready for products."""

    def __init__(
        self, transitions: Tensor, values: Tensor | None = None, *, surprisal: bool = False
    ) -> None:
        self.form, self.scores = EdgeForm.of(transitions), transitions
        self.values, self.surprisal = values, surprisal
        peaks = column_peaks(transitions)
        self.weight = scaled_exp(transitions, peaks)
        self.peak = self._steps_first(peaks).double()  # broadcasts to [T-1, N, K]
        self.weighted_value: Tensor | None = None
        if surprisal:
            self.weighted_value = self.weight * surprisals(transitions, self.weight, peaks)
        elif values is not None:
            self.weighted_value = self.weight * shifted_values(transitions, self.weight, values)
            self.value_shift = value_shift(transitions, values).squeeze(-2).double()

    def _steps_first(self, columns: Tensor) -> Tensor:
        """Numbers for each column [..., K], to broadcast to [T-1, N, K]."""
        return columns.transpose(0, 1) if self.form is EdgeForm.PER_STEP else columns

    def shift(self, incoming: Tensor) -> Tensor | float:
        """What products leave out of the mean into each state [T-1, N, K], given its mass."""
        if self.surprisal:
            return torch.threshold(incoming, TRUST[incoming.dtype], 1.0).log_().double()
        return 0.0 if self.values is None else self._steps_first(self.value_shift)

    def mean_into(self, t: int, means: Tensor, w: Tensor, state: Tensor, item: Tensor) -> Tensor:
        """[M, K]: w times (mean before plus what the edge adds), for some states after step t."""
        if self.surprisal:
            return torch.special.entr(w).addcmul_(w, means)
        added = 0.0 if self.values is None else edges_into(self.values, t, state, item)
        return torch.where(w > 0, w * (means + added), 0.0)

    # One step after the other ----------------------------------------------------------------

    @property
    def product(self) -> Callable[..., Tensor]:
        """Rows of one step times its matrix; rows and matrices are those given below."""
        return torch.mm if self.form is EdgeForm.SHARED else torch.bmm

    def rows(self, x: Tensor) -> Sequence[Tensor]:
        """The steps of [T, N, K]: [N, K], or [N, 1, K] for chains with matrices of their own."""
        return (x if self.form is EdgeForm.SHARED else x.unsqueeze(2)).unbind()

    def matrices(self, num_moves: int, *, backward: bool = False) -> Sequence[Tensor]:
        """The matrix of each move, [K, K] or [N, K, K]; transposed for sweeps `backward`."""
        weight = self.weight.transpose(-1, -2) if backward else self.weight
        return weight.unbind(1) if self.form is EdgeForm.PER_STEP else [weight] * num_moves

    # All steps at once -----------------------------------------------------------------------

    def products(self, rows: Tensor, matrices: Tensor) -> Tensor:
        """Rows of every step [T-1, N, K] times matrices in the form of the edges."""
        if self.form is EdgeForm.SHARED:
            return rows @ matrices
        rows = rows.transpose(0, 1)
        if self.form is EdgeForm.PER_CHAIN:
            return (rows @ matrices).transpose(0, 1)
        return (rows.unsqueeze(-2) @ matrices).squeeze(-2).transpose(0, 1)

    def outer_products(self, before: Tensor, after: Tensor) -> Tensor:
        """Of rows [T-1, N, K], summed over all that share an edge: in the form of the edges."""
        if self.form is EdgeForm.SHARED:
            return before.flatten(0, 1).T @ after.flatten(0, 1)
        if self.form is EdgeForm.PER_CHAIN:
            return before.permute(1, 2, 0) @ after.transpose(0, 1)
        left, right = before.transpose(0, 1).unsqueeze(-1), after.transpose(0, 1).unsqueeze(-2)
        return torch.mul(left, right, out=torch.empty_like(self.weight))

    def add_columns(
        self, total: Tensor, t: int, item: Tensor, state: Tensor, columns: Tensor
    ) -> None:
        """Add columns [M, K] into the given states [M] of the given chains [M] to gradients."""
        into = (total[:, t] if self.form is EdgeForm.PER_STEP else total).transpose(-1, -2)
        index = (state,) if self.form is EdgeForm.SHARED else (item, state)
        into.index_put_(index, columns, accumulate=True)
