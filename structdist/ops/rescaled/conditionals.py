"""The chain seen from its end: each state given the one after it, and sums over that."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.edges import edges_into
from structdist.ops.finite import TRUST
from structdist.ops.rescaled.edges import Edges
from structdist.ops.rescaled.state import Filtered, last_step


class Swept(NamedTuple):
    """Of a sweep from last to first, each [T, N, K]."""

    grad: Tensor  # what was carried; in memory chains come first, as gradients are wanted
    scaled: Tensor  # the same over the incoming mass, as products see it
    pulled: Tensor  # products of what is after each step, before they are weighed
    columns: Tensor | None = None  # in the form of the edges: what went along those that underflow


# Of a step, chains [M], states [M] and what is before them [M, K]: what columns add to a sweep.
AddedByColumns = Callable[[int, Tensor, Tensor, Tensor], Tensor]


class Underflow:
    """The columns of each step whose sums are too small to trust."""

    def __init__(self, edges: Edges, incoming: Tensor, log_alpha: Tensor) -> None:
        self.edges, self.log_alpha = edges, log_alpha
        self.mask = (incoming <= TRUST[incoming.dtype]) & (log_alpha > -torch.inf)

    def at(self, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """Chains [M] and states [M] at step t, and float64 probabilities [M, K] before them."""
        item, state = self.mask[t].nonzero(as_tuple=True)
        moves = self.log_alpha[t - 1][item]
        moves += edges_into(self.edges.scores, t - 1, state, item)
        return item, state, torch.softmax(moves, -1)  # one of them is possible


class Conditionals:
    """The probability w_ij = P_i E_ij / q_j of each state i given j after it, as three factors.

    Columns j that underflowed have 1 / q_j = 0 here, and are in `underflow` instead.
    """

    def __init__(self, edges: Edges, filtered: Filtered, lengths: Tensor) -> None:
        self.edges, self.weights, incoming = edges, filtered.weights, filtered.incoming
        self.inverse = torch.threshold(incoming, TRUST[incoming.dtype], torch.inf).reciprocal_()
        last = last_step(self.weights, lengths).double()
        self.last = last / last.sum(-1, keepdim=True).clamp_(min=1)  # [N, K] float64
        self.underflow: Underflow | None = None
        if filtered.log_alpha is not None:
            self.underflow = Underflow(edges, incoming, filtered.log_alpha)

    def sweep(
        self,
        upstream: Tensor,
        *,
        less: Tensor | None = None,
        also: AddedByColumns | None = None,
        with_edges: bool = False,
    ) -> Swept:
        """G_t(i) = upstream_t(i) + sum_j w_ij G_{t+1}(j), from last to first.

        Of what is `scaled`, `less` [T, N, K] is taken off before the sum. Columns that underflow
        add to it what `also` says, and are gathered where gradients of edges are wanted.
        """
        scaled = upstream * self.inverse
        if less is not None:
            scaled -= less
        if self.underflow is not None:
            edges = torch.zeros_like(self.edges.weight) if with_edges else None
            return self._sweep_with_underflow(self.underflow, upstream, scaled, also, edges)
        pulled = torch.empty_like(scaled)
        pulled[-1].zero_()
        ahead, before = self.edges.rows(scaled), self.edges.rows(pulled)
        decay = self.edges.rows(self.weights * self.inverse)
        product = self.edges.product
        matrices = self.edges.matrices(len(ahead) - 1, backward=True)
        for t in reversed(range(len(matrices))):
            product(ahead[t + 1], matrices[t], out=before[t])
            ahead[t].addcmul_(decay[t], before[t])
        grad = torch.empty_like(upstream.transpose(0, 1), memory_format=torch.contiguous_format)
        torch.addcmul(upstream, self.weights, pulled, out=grad.transpose(0, 1))
        return Swept(grad.transpose(0, 1), scaled, pulled)

    def _sweep_with_underflow(
        self,
        underflow: Underflow,
        upstream: Tensor,
        scaled: Tensor,
        also: AddedByColumns | None,
        edges: Tensor | None,
    ) -> Swept:
        grad, pulled = upstream.clone(), torch.zeros_like(scaled)
        ahead, before = self.edges.rows(scaled), self.edges.rows(pulled)
        matrices = self.edges.matrices(len(ahead) - 1, backward=True)
        for t in reversed(range(len(matrices))):
            self.edges.product(ahead[t + 1], matrices[t], out=before[t])
            item, state, w = underflow.at(t + 1)
            columns = w * grad[t + 1][item, state].unsqueeze(-1)
            if also is not None:
                columns += also(t + 1, item, state, w)
            columns = columns.to(grad.dtype)
            carried = (self.weights[t] * pulled[t]).index_add_(0, item, columns)
            grad[t].add_(carried)
            scaled[t].addcmul_(carried, self.inverse[t])
            if edges is not None:
                self.edges.add_columns(edges, t, item, state, columns)
        return Swept(grad, scaled, pulled, edges)

    def sum_of_moves(self, swept: Swept) -> Tensor:
        """sum_t w_ij G_{t+1}(j), in the form of the edges."""
        total = self.edges.outer_products(self.weights[:-1], swept.scaled[1:])
        total *= self.edges.weight
        return total if swept.columns is None else total.add_(swept.columns)
