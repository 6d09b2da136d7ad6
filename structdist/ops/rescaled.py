"""The fast recurrences in plain torch, for every device: sums over states as matrix products.

With `P = exp(log_alpha_t)` (largest entry 1) and `E` the exp of the transitions, each column scaled
to have 1 as its largest entry, the mass that arrives in state j is `q_j = sum_i P_i E_ij`, and

    log_alpha_{t+1}(j) = log q_j + peak_j + emission_{t+1}(j) - log_norm_{t+1}.

Why this is as good as log-sum-exp: a term of the sum is lost only where P_i, E_ij or their product
is below the least normal number (1.2e-38 in float32), and all entries are at most 1, so what is
lost is less than K times that. Where `q_j >= TRUST` (1e-20), it is less than K * 1.2e-18 of q_j,
far below one rounding error. Where it is not, the column is *doubtful* and redone in log space.
Log weights are float64 throughout, so that large scores do not eat small differences.

Adjoints follow `w_ij = P_i E_ij / q_j`, the probability of i given j after it; see the equations in
csrc/filter.cpp and csrc/expect.cpp, the compiled twins.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import (
    Chain,
    ExpectGrads,
    Expected,
    Filtered,
    FilterGrads,
    edges_at,
    in_chain,
)
from structdist.ops.reference import (
    Best,
    Draw,
    relaxed_backtrack,
    sampling_backtrack,
    viterbi,
    without_padding,
)

__all__ = [
    "Best",
    "expect",
    "expect_adjoint",
    "filter",
    "filter_adjoint",
    "gumbel_ffbs",
    "sample_paths",
    "viterbi",
]

TRUST = {torch.float32: 1e-20, torch.float64: 1e-150}


class _Edges:
    """Transitions, or values on them, ready for products."""

    def __init__(self, transitions: Tensor, values: Tensor | None = None) -> None:
        peak = transitions.amax(-2)
        self.transitions = transitions
        self.peak = torch.where(peak.isinf(), 0.0, peak)  # [..., K]
        self.weight = (transitions - self.peak.unsqueeze(-2)).exp()
        self.values = values
        if values is not None:
            self.weighted_value = torch.where(self.weight > 0, self.weight * values, 0.0)

    def peak_at(self, t: int) -> Tensor:
        return edges_at(self.peak.unsqueeze(-2), t).squeeze(-2)


def _times(rows: Tensor, matrix: Tensor) -> Tensor:
    """Rows [N, K] times one matrix [1, K, K] or each its own [N, K, K]."""
    if len(matrix) == 1:
        return rows @ matrix[0]
    return (rows.unsqueeze(-2) @ matrix).squeeze(-2)


def _weights(log_alpha: Tensor, dtype: torch.dtype) -> Tensor:
    return log_alpha.to(dtype).exp()


def _moves(transitions: Tensor, t: int, chain: Tensor, state: Tensor) -> Tensor:
    """Scores [M, K] of moving into the given states [M] of the given chains [M] after step t."""
    incoming = edges_at(transitions, t).transpose(-1, -2)
    return incoming[0][state] if len(incoming) == 1 else incoming[chain, state]


def filter(chain: Chain) -> Filtered:
    """The forward pass. O(N T K^2) time, O(N T K) memory besides the exp of the transitions."""
    chain = without_padding(chain)
    with torch.autocast(chain.emissions.device.type, enabled=False):
        filtered = _filter(chain, careful=False)
        if _needs_care(chain, filtered):
            filtered = _filter(chain, careful=True)
    return filtered


def _filter(chain: Chain, careful: bool) -> Filtered:
    emissions, transitions, lengths = chain
    active = in_chain(lengths, emissions.shape[1])
    edges = _Edges(transitions)
    here, norm = _normalize(emissions[:, 0].double())
    log_alpha, arrival = [here], [torch.ones_like(emissions[:, 0])]
    log_norm = [torch.where(active[:, 0], norm, 0.0)]
    for t in range(1, emissions.shape[1]):
        before = log_alpha[-1]
        q = _times(_weights(before, emissions.dtype), edges_at(edges.weight, t - 1))
        log_q = q.log().double() + edges.peak_at(t - 1)
        if careful:
            log_q = _redo_doubtful(log_q, q, before, transitions, t)
        here, norm = _normalize(log_q + emissions[:, t])
        going_on = active[:, t]
        log_alpha.append(torch.where(going_on[:, None], here, before))
        log_norm.append(torch.where(going_on, norm, 0.0))
        arrival.append(q)
    total = torch.logsumexp(log_alpha[-1], -1) + torch.stack(log_norm, 1).sum(1)
    log_z = torch.where(lengths > 0, total, 0.0)
    return Filtered(
        torch.stack(log_alpha, 1), torch.stack(log_norm, 1), torch.stack(arrival, 1), log_z
    )


def _normalize(log_weight: Tensor) -> tuple[Tensor, Tensor]:
    norm = log_weight.amax(-1)
    return log_weight - torch.where(norm.isinf(), 0.0, norm)[:, None], norm


def _needs_care(chain: Chain, filtered: Filtered) -> bool:
    """Is any sum small without being empty? (One look at the end, not one a step.)"""
    emissions, transitions, lengths = chain
    small = filtered.arrival[:, 1:] < TRUST[emissions.dtype]
    small &= in_chain(lengths, emissions.shape[1])[:, 1:, None]
    if not small.any():
        return False
    possible = (filtered.log_alpha[:, :-1] > -torch.inf).to(emissions.dtype)
    allowed = (transitions > -torch.inf).to(emissions.dtype)
    if transitions.dim() == 4:
        ways = (possible.unsqueeze(-2) @ allowed).squeeze(-2)
    else:
        ways = possible @ allowed
    return bool((small & (ways > 0)).any())


def _redo_doubtful(log_q: Tensor, q: Tensor, before: Tensor, transitions: Tensor, t: int) -> Tensor:
    chain, state = (q < TRUST[q.dtype]).nonzero(as_tuple=True)
    logits = before[chain] + _moves(transitions, t - 1, chain, state)
    return log_q.index_put((chain, state), torch.logsumexp(logits, -1))


class _Doubtful:
    """The columns that need log space, of a step of a sweep back; empty on most chains."""

    def __init__(self, chain: Chain, filtered: Filtered) -> None:
        self.chain, self.filtered = chain, filtered
        possible = filtered.log_alpha > -torch.inf
        self.mask = (filtered.arrival < TRUST[chain.emissions.dtype]) & possible
        self.mask &= in_chain(chain.lengths, self.mask.shape[1]).unsqueeze(-1)
        self.any = bool(self.mask[:, 1:].any())

    def at(self, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """Chains [M] and states [M] at step t, and the probabilities [M, K] of those before."""
        chain, state = self.mask[:, t].nonzero(as_tuple=True)
        before = self.filtered.log_alpha[chain, t - 1]
        moves = before + _moves(self.chain.transitions, t - 1, chain, state)
        return chain, state, torch.softmax(moves, -1).to(self.chain.emissions.dtype)


class _EdgeGrads:
    """Gradients of edges, summed as the form of the transitions asks."""

    def __init__(self, like: Tensor) -> None:
        self.total = torch.zeros_like(like)

    def _at(self, t: int) -> Tensor:
        return self.total if self.total.dim() < 4 else self.total[:, t]

    def add_products(self, t: int, before: Tensor, after: Tensor, weight: Tensor) -> None:
        """Outer products of rows [N, K], times a weight [1, K, K] or [N, K, K]."""
        if self.total.dim() == 2:
            self.total.addcmul_(before.T @ after, weight[0])
        else:
            self._at(t).addcmul_(before.unsqueeze(-1) * after.unsqueeze(-2), weight)

    def add_columns(self, t: int, chain: Tensor, state: Tensor, columns: Tensor) -> None:
        """Columns [M, K] into the given states of the given chains."""
        into = self._at(t).transpose(-1, -2)
        index = (state,) if into.dim() == 2 else (chain, state)
        into.index_put_(index, columns, accumulate=True)


def filter_adjoint(
    chain: Chain, filtered: Filtered, upstream: Tensor | None, grad_log_z: Tensor | None
) -> FilterGrads:
    """Gradients from that of log_alpha [N, T, K] and that of log_z [N], either of them None."""
    chain = without_padding(chain)
    with torch.autocast(chain.emissions.device.type, enabled=False):
        return _filter_adjoint(chain, filtered, upstream, grad_log_z)


def _filter_adjoint(
    chain: Chain, filtered: Filtered, upstream: Tensor | None, grad_log_z: Tensor | None
) -> FilterGrads:
    emissions, transitions, lengths = chain
    num_steps, dtype = emissions.shape[1], emissions.dtype
    active = in_chain(lengths, num_steps).unsqueeze(-1)
    edges, grad_edges = _Edges(transitions), _EdgeGrads(transitions)
    doubtful = _Doubtful(chain, filtered)
    grad = _zero_or(upstream, emissions)
    if grad_log_z is not None:
        grad = grad + _at_last_step(filtered, lengths, grad_log_z)
    grad = torch.where(active, grad, 0.0)
    grads = [grad[:, t] for t in range(num_steps)]
    for t in reversed(range(1, num_steps)):
        p = _weights(filtered.log_alpha[:, t - 1], dtype)
        scaled = torch.where(active[:, t], grads[t] * _inverse(filtered.arrival[:, t]), 0.0)
        weight = edges_at(edges.weight, t - 1)
        pulled = p * _times(scaled, weight.transpose(-1, -2))
        grad_edges.add_products(t - 1, p, scaled, weight)
        if doubtful.any:
            n, j, w = doubtful.at(t)
            columns = w * grads[t][n, j].unsqueeze(-1)
            pulled.index_add_(0, n, columns)
            grad_edges.add_columns(t - 1, n, j, columns)
        grads[t - 1] = grads[t - 1] + pulled
    return FilterGrads(torch.stack(grads, 1), grad_edges.total)


def _zero_or(x: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if x is None else x.to(like.dtype)


def _inverse(arrival: Tensor) -> Tensor:
    """1 / q where q is trusted, else 0."""
    trusted = arrival >= TRUST[arrival.dtype]
    return torch.where(trusted, arrival, 1.0).reciprocal() * trusted


def _at_last_step(filtered: Filtered, lengths: Tensor, grad_log_z: Tensor) -> Tensor:
    """[N, T, K]: the gradient of log Z with respect to the last log_alpha of each chain."""
    num_steps = filtered.log_alpha.shape[1]
    is_last = torch.arange(num_steps, device=lengths.device) == lengths[:, None] - 1
    last = torch.softmax(filtered.log_alpha[:, -1], -1) * grad_log_z[:, None]
    return (is_last.unsqueeze(-1) * last.unsqueeze(1)).to(filtered.arrival.dtype)


def expect(chain: Chain, filtered: Filtered, nodes: Tensor, edges: Tensor | None) -> Expected:
    """Conditional means of node values [N, T, K] and edge values (in the transitions' form)."""
    chain, nodes, edges = _without_padding(chain, nodes, edges)
    with torch.autocast(chain.emissions.device.type, enabled=False):
        return _expect(chain, filtered, nodes, edges)


def _without_padding(
    chain: Chain, nodes: Tensor, edges: Tensor | None
) -> tuple[Chain, Tensor, Tensor | None]:
    shape = chain.transitions if edges is None else edges
    values = without_padding(Chain(nodes.double(), shape, chain.lengths))
    edges = None if edges is None else values.transitions.to(chain.emissions.dtype)
    return without_padding(chain), values.emissions, edges


def _expect(chain: Chain, filtered: Filtered, nodes: Tensor, values: Tensor | None) -> Expected:
    emissions, transitions, lengths = chain
    active = in_chain(lengths, emissions.shape[1]).unsqueeze(-1)
    edges, doubtful = _Edges(transitions, values), _Doubtful(chain, filtered)
    means = [nodes[:, 0]]
    for t in range(1, emissions.shape[1]):
        p, p_mean, reference = _weigh_means(filtered, means[-1], t - 1)
        total = _times(p_mean, edges_at(edges.weight, t - 1))
        if edges.values is not None:
            total = total + _times(p, edges_at(edges.weighted_value, t - 1))
        mean = (total * _inverse(filtered.arrival[:, t])).double() + reference
        if doubtful.any:
            n, j, w = doubtful.at(t)
            given = means[-1][n] + _moves_or_zero(edges.values, t - 1, n, j)
            mean = mean.index_put((n, j), (w.double() * given).sum(-1))
        means.append(torch.where(active[:, t], mean + nodes[:, t], means[-1]))
    last = torch.softmax(filtered.log_alpha[:, -1], -1)
    value = torch.where(lengths > 0, (last * means[-1]).nan_to_num().sum(-1), 0.0)
    return Expected(torch.stack(means, 1), value)


def _weigh_means(filtered: Filtered, mean: Tensor, t: int) -> tuple[Tensor, Tensor, Tensor]:
    """P and P (F - reference) [N, K], and the reference [N, 1]: the mean of the likeliest state."""
    log_alpha = filtered.log_alpha[:, t]
    reference = mean.gather(-1, log_alpha.argmax(-1, keepdim=True))
    p = _weights(log_alpha, filtered.arrival.dtype)
    return p, p * (mean - reference).to(p.dtype), reference


def _moves_or_zero(values: Tensor | None, t: int, chain: Tensor, state: Tensor) -> Tensor | float:
    return 0.0 if values is None else _moves(values, t, chain, state)


def expect_adjoint(
    chain: Chain,
    filtered: Filtered,
    nodes: Tensor,
    edges: Tensor | None,
    expected: Expected,
    grad_value: Tensor,
) -> ExpectGrads:
    """Gradients of the expectation from its own [N]."""
    chain, nodes, edges = _without_padding(chain, nodes, edges)
    with torch.autocast(chain.emissions.device.type, enabled=False):
        return _ExpectAdjoint(chain, filtered, nodes, edges, expected).run(grad_value)


class _ExpectAdjoint:
    """Carries M, the gradient of the means, and G, that of log_alpha, from last to first."""

    def __init__(
        self,
        chain: Chain,
        filtered: Filtered,
        nodes: Tensor,
        values: Tensor | None,
        expected: Expected,
    ) -> None:
        self.chain, self.filtered, self.nodes, self.expected = chain, filtered, nodes, expected
        self.edges, self.doubtful = _Edges(chain.transitions, values), _Doubtful(chain, filtered)
        self.grad_edges = _EdgeGrads(chain.transitions)
        self.grad_values = _EdgeGrads(chain.transitions)
        self.active = in_chain(chain.lengths, nodes.shape[1]).unsqueeze(-1)

    def run(self, grad_value: Tensor) -> ExpectGrads:
        num_steps = self.nodes.shape[1]
        start = _at_last_step(self.filtered, self.chain.lengths, grad_value)
        surplus = (self.expected.mean - self.expected.value[:, None, None]).to(start.dtype)
        masses = [start[:, t] for t in range(num_steps)]
        grads = [(start * surplus)[:, t] for t in range(num_steps)]
        for t in reversed(range(1, num_steps)):
            grad, mass = self._step_back(t, grads[t], masses[t])
            grads[t - 1], masses[t - 1] = grads[t - 1] + grad, masses[t - 1] + mass
        return ExpectGrads(
            torch.stack(grads, 1),
            self.grad_edges.total,
            torch.stack(masses, 1),
            self.grad_values.total,
        )

    def _step_back(self, t: int, grad: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
        mean, dtype = self.expected.mean, grad.dtype
        p, p_mean, reference = _weigh_means(self.filtered, mean[:, t - 1], t - 1)
        relative = torch.where(self.active[:, t], mean[:, t] - self.nodes[:, t] - reference, 0.0)
        relative = relative.to(dtype)
        inverse = torch.where(self.active[:, t], _inverse(self.filtered.arrival[:, t]), 0.0)
        m, u = mass * inverse, (grad - mass * relative) * inverse
        weight = edges_at(self.edges.weight, t - 1)
        em, eu = (_times(x, weight.transpose(-1, -2)) for x in (m, u))
        self.grad_edges.add_products(t - 1, p, u, weight)
        self.grad_edges.add_products(t - 1, p_mean, m, weight)
        self.grad_values.add_products(t - 1, p, m, weight)
        if self.edges.values is not None:
            weighted = edges_at(self.edges.weighted_value, t - 1)
            eu = eu + _times(m, weighted.transpose(-1, -2))
            self.grad_edges.add_products(t - 1, p, m, weighted)
        pulled, carried = p * eu + p_mean * em, p * em
        if self.doubtful.any:
            self._leave_carefully(t, grad, mass, relative, reference, pulled, carried)
        return pulled, carried

    def _leave_carefully(
        self,
        t: int,
        grad: Tensor,
        mass: Tensor,
        relative: Tensor,
        reference: Tensor,
        pulled: Tensor,
        carried: Tensor,
    ) -> None:
        """Add the share of doubtful columns to `pulled` and `carried`, in place."""
        n, j, w = self.doubtful.at(t)
        given = (self.expected.mean[n, t - 1] - reference[n]).to(w.dtype)
        given = given + _moves_or_zero(self.edges.values, t - 1, n, j)
        share = w * mass[n, j].unsqueeze(-1)
        columns = w * grad[n, j].unsqueeze(-1) + share * (given - relative[n, j].unsqueeze(-1))
        pulled.index_add_(0, n, columns)
        carried.index_add_(0, n, share)
        self.grad_edges.add_columns(t - 1, n, j, columns)
        self.grad_values.add_columns(t - 1, n, j, share)


def sample_paths(chain: Chain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T K)."""
    _, transitions, lengths = without_padding(chain)
    return sampling_backtrack(filtered.log_alpha, transitions, lengths, uniform)


def gumbel_ffbs(chain: Chain, filtered: Filtered, gumbel: Tensor, temperature: float) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K], and their relaxation. O(S N T K)."""
    _, transitions, lengths = without_padding(chain)
    draw = relaxed_backtrack(filtered.log_alpha, transitions, lengths, gumbel, temperature)
    return Draw(draw.soft.to(gumbel.dtype), draw.path)
