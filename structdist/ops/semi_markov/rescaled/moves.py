"""Sums over the label before, as matrix products, and the way back through them."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import in_chain
from structdist.ops.edges import EdgeForm, edges_at, sum_of_outer_products
from structdist.ops.finite import TRUST
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.state import Filtered
from structdist.semirings import logsumexp, softmax


class Moves:
    """Transitions ready for products: exp of each column less its peak."""

    def __init__(self, transitions: Tensor) -> None:
        peak = transitions.amax(-2, keepdim=True)
        self.transitions, self.peak = transitions, torch.where(peak.isinf(), 0.0, peak)
        self.weight = (transitions - self.peak).exp()

    def forward(self, ends: Tensor, t: int, careful: bool) -> tuple[Tensor, Tensor, Tensor]:
        """[N, K]: P and q of the step after t, and its `begins`, from the `ends` of step t.

        Sums that underflow are redone in log space where `careful`, else left alone.
        """
        peak = ends.amax(-1, keepdim=True)
        peak = torch.where(peak.isinf(), 0.0, peak)
        p = (ends - peak).to(self.weight.dtype).exp()
        q = times(p, edges_at(self.weight, t))
        begins = q.log().double() + (edges_at(self.peak, t).squeeze(-2) + peak)
        if careful and bool((q < TRUST[q.dtype]).any()):
            exact = logsumexp(ends.unsqueeze(-1) + edges_at(self.transitions, t), -2)
            begins = torch.where(q < TRUST[q.dtype], exact, begins)
        return p, q, begins


def times(rows: Tensor, matrix: Tensor) -> Tensor:
    """Rows [N, K] times one matrix [1, K, K] or each its own [N, K, K]."""
    if len(matrix) == 1:
        return rows @ matrix[0]
    return (rows.unsqueeze(-2) @ matrix).squeeze(-2)


def underflows(chain: SemiMarkovChain, filtered: Filtered) -> Tensor:
    """Bool [T]: is a sum into this step small without being empty, in any chain of the batch?"""
    dtype = chain.emissions.dtype
    small = filtered.incoming < TRUST[dtype]
    small = small & in_chain(chain.lengths, small.shape[1]).unsqueeze(-1)
    small[:, 0] = False
    if not small.any():
        return small.any(-1).any(0)
    possible = (filtered.ends[:, :-1] > -torch.inf).to(dtype)
    allowed = (chain.transitions > -torch.inf).to(dtype)
    if EdgeForm.of(allowed) is EdgeForm.PER_STEP:
        ways = (possible.unsqueeze(-2) @ allowed).squeeze(-2)
    else:
        ways = possible @ allowed
    small[:, 1:] &= ways > 0
    return small.any(-1).any(0)


class MovesBack:
    """Carries gradients of `begins` to the `ends` before them, and to the transitions."""

    def __init__(self, chain: SemiMarkovChain, filtered: Filtered, needed: bool) -> None:
        self.chain, self.filtered, self.needed = chain, filtered, needed
        self.moves = Moves(chain.transitions)
        self.in_log_space = underflows(chain, filtered).tolist()
        q = filtered.incoming
        trusted = q >= TRUST[q.dtype]
        self.inverse = torch.where(trusted, q, 1.0).reciprocal() * trusted
        self.scaled = torch.zeros_like(q)  # gradients of `begins` over q
        self.exact = torch.zeros_like(chain.transitions) if any(self.in_log_space) else None

    def pull(self, t: int, grad_begins: Tensor) -> Tensor:
        """[N, K]: the gradient of the `ends` of step t, from that of the `begins` after it."""
        if self.in_log_space[t + 1]:
            return self._pull_in_log_space(t, grad_begins)
        torch.mul(grad_begins, self.inverse[:, t + 1], out=self.scaled[:, t + 1])
        back = edges_at(self.moves.weight, t).transpose(-1, -2)
        return self.filtered.weights[:, t] * times(self.scaled[:, t + 1], back)

    def _pull_in_log_space(self, t: int, grad_begins: Tensor) -> Tensor:
        share = label_shares(self.chain, self.filtered, t).to(grad_begins.dtype)
        pulled = share * grad_begins.unsqueeze(-2)  # [N, K, K]
        if self.needed and self.exact is not None:
            add_edges(self.exact, t, pulled)
        return pulled.sum(-1)

    def transitions(self) -> Tensor | None:
        """The gradient of the transitions, once all steps are done."""
        if not self.needed:
            return None
        weights, scaled = self.filtered.weights[:, :-1], self.scaled[:, 1:]
        form = EdgeForm.of(self.chain.transitions)
        found = self.moves.weight * sum_of_outer_products(weights[None], scaled[None], form)
        return found if self.exact is None else found + self.exact


def label_shares(chain: SemiMarkovChain, filtered: Filtered, t: int) -> Tensor:
    """[N, K, K] float64: of each label up to step t, given the label that begins after it."""
    return softmax(filtered.ends[:, t, :, None] + edges_at(chain.transitions, t), -2)


def add_edges(total: Tensor, t: int, grad: Tensor) -> None:
    """Add gradients [N, K, K] of the moves after step t, as the form of the total asks."""
    form = EdgeForm.of(total)
    if form is EdgeForm.SHARED:
        total += grad.sum(0)
    elif form is EdgeForm.PER_CHAIN:
        total += grad
    else:
        total[:, t] += grad
