"""Expectations, entropies, and their adjoint. The equations are in csrc/expect.cpp."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, full_precision, in_chain, without_padding
from structdist.ops.edges import edges_at, sum_to_form
from structdist.ops.problem import Expected, Grads, Needs, Values
from structdist.ops.rescaled.edges import (
    EdgeGrads,
    Edges,
    Underflow,
    at_last_step,
    inverse_of,
    times,
)
from structdist.ops.rescaled.state import Filtered, narrowed
from structdist.semirings import softmax


def entropy(chain: Chain, filtered: Filtered) -> Expected:
    """In nats, with the conditional entropies of Algorithm 3 of Fu et al. O(N T K^2)."""
    with full_precision(chain.emissions.device):
        return _Means(without_padding(chain), filtered).expect()


def entropy_adjoint(
    chain: Chain, filtered: Filtered, expected: Expected, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of the entropy [N]. O(N T K^2)."""
    with full_precision(chain.emissions.device):
        means = _Means(without_padding(chain), filtered)
        return _Adjoint(means, expected, with_edges=needs[1]).run(grad)[:2]


def expectation(chain: Chain, filtered: Filtered, values: Values) -> Expected:
    """Of values on nodes [N, T, K] and on edges (of any form). O(N T K^2)."""
    with full_precision(chain.emissions.device):
        return _means_of(chain, filtered, values).expect()


def expectation_adjoint(
    chain: Chain,
    filtered: Filtered,
    values: Values,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients of scores and values from that of the expectation [N]. O(N T K^2)."""
    with full_precision(chain.emissions.device):
        adjoint = _Adjoint(
            _means_of(chain, filtered, values), expected, with_edges=needs[1] or needs[3]
        )
        grads = adjoint.run(grad)
    inputs = (*chain.scores, *values)
    found = [g if need else None for g, need in zip(grads, needs, strict=True)]
    for place in (1, 3):
        given, own = found[place], inputs[place]
        found[place] = None if given is None or own is None else sum_to_form(given, own)
    return found


def _means_of(chain: Chain, filtered: Filtered, values: Values) -> _Means:
    dtype, no_edges = chain.emissions.dtype, values[1] is None
    chain, (nodes, edges) = chain.with_values(values)
    nodes, edges, _ = without_padding(Chain(nodes.double(), edges, chain.lengths))
    return _Means(without_padding(chain), filtered, nodes, None if no_edges else edges.to(dtype))


class _Means:
    """Conditional means F of values, or without values on nodes conditional entropies."""

    def __init__(
        self,
        chain: Chain,
        filtered: Filtered,
        nodes: Tensor | None = None,
        edge_values: Tensor | None = None,
    ) -> None:
        self.chain, self.filtered, self.nodes = chain, filtered, nodes
        self.is_entropy = nodes is None
        self.edges = Edges(chain.transitions, edge_values, surprisal=self.is_entropy)
        self.underflow = Underflow(chain, filtered)
        self.active = in_chain(chain.lengths, chain.emissions.shape[1]).unsqueeze(-1)
        self.last = softmax(filtered.log_alpha[:, -1], -1)  # [N, K]

    def node_at(self, t: int) -> Tensor | float:
        return 0.0 if self.nodes is None else self.nodes[:, t]

    def weigh(self, mean: Tensor, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """P, P (F - pivot) or P (F - log P - pivot) [N, K], and the pivot [N, 1].

        The pivot is the mean of the likeliest state, so that products see small numbers only.
        """
        p = self.filtered.weights[:, t]
        pivot = mean.gather(-1, p.argmax(-1, keepdim=True))
        p_mean = p * narrowed(mean - pivot, p.dtype)
        return p, p_mean + torch.special.entr(p) if self.is_entropy else p_mean, pivot

    def at_end(self, mean: Tensor) -> Tensor:
        """[N, K]: the mean of the whole path, given its last state; 0 where that is impossible."""
        if self.is_entropy:
            mean = mean - self.last.log()
        return torch.where(self.last == 0, 0.0, mean)

    def expect(self) -> Expected:
        means = torch.zeros_like(self.filtered.log_alpha)  # one piece: memory stays whole
        means[:, 0] += self.node_at(0)
        for t in range(1, self.active.shape[1]):
            here = self._arrive(means[:, t - 1], t) + self.node_at(t)
            means[:, t] = torch.where(self.active[:, t], here, means[:, t - 1])
        value = (self.last * self.at_end(means[:, -1])).sum(-1)
        value = torch.where(self.chain.lengths > 0, value, 0.0)
        return Expected(value, means)

    def _arrive(self, before: Tensor, t: int) -> Tensor:
        p, p_mean, pivot = self.weigh(before, t - 1)
        incoming = self.filtered.incoming[:, t]
        total = times(p_mean, edges_at(self.edges.weight, t - 1))
        if self.edges.weighted_value is not None:
            total = total + times(p, edges_at(self.edges.weighted_value, t - 1))
        mean = (total * inverse_of(incoming)).double() + pivot
        mean = mean + self.edges.shift_at(t - 1, incoming)
        if self.underflow.any:
            n, j, w = self.underflow.at(t)
            in_log_space = self.edges.mean_into(t - 1, before[n], w, j, n).sum(-1)
            mean = mean.index_put((n, j), in_log_space)
        return mean.clamp(min=0) if self.is_entropy else mean


class _Adjoint:
    """Carries M, the gradient of the means, and G, that of log_alpha, from last to first."""

    def __init__(self, means: _Means, expected: Expected, with_edges: bool) -> None:
        self.means, self.value, self.mean = means, expected.value, expected.given
        transitions = means.chain.transitions
        self.grad_edges = EdgeGrads(transitions) if with_edges else None
        self.grad_values = EdgeGrads(transitions) if with_edges else None

    def run(self, grad_value: Tensor) -> Grads:
        """Gradients of emissions, transitions, node values and edge values."""
        means, (filtered, lengths) = self.means, (self.means.filtered, self.means.chain.lengths)
        start = at_last_step(filtered, lengths, grad_value)  # [N, T, K], 0 but at the end
        surplus = means.at_end(self.mean[:, -1]) - self.value[:, None]
        surplus = narrowed(torch.where(means.last == 0, 0.0, surplus), start.dtype)
        masses, grads = start, start * surplus[:, None]
        for t in reversed(range(1, start.shape[1])):
            grad, mass = self._step_back(t, grads[:, t], masses[:, t])
            grads[:, t - 1] += grad
            masses[:, t - 1] += mass
        edges = [None if g is None else g.total for g in (self.grad_edges, self.grad_values)]
        return grads, edges[0], masses, edges[1]

    def _step_back(self, t: int, grad: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
        edges, active = self.means.edges, self.means.active[:, t]
        incoming = self.means.filtered.incoming[:, t]
        p, p_mean, pivot = self.means.weigh(self.mean[:, t - 1], t - 1)
        relative = torch.where(active, self.mean[:, t] - self.means.node_at(t) - pivot, 0.0)
        inverse = torch.where(active, inverse_of(incoming), 0.0)
        unshifted = narrowed(relative - edges.shift_at(t - 1, incoming), grad.dtype)
        unshifted = torch.where(inverse > 0, unshifted, 0.0)
        m, u = mass * inverse, (grad - mass * unshifted) * inverse
        weight = edges_at(edges.weight, t - 1)
        em, eu = (times(x, weight.transpose(-1, -2)) for x in (m, u))
        if edges.weighted_value is not None:
            eu = eu + times(m, edges_at(edges.weighted_value, t - 1).transpose(-1, -2))
        self._add_edges(t, p, p_mean, m, u)
        pulled, carried = p * eu + p_mean * em, p * em
        if self.means.underflow.any:
            self._add_underflow(t, grad, mass, relative + pivot, pulled, carried)
        return pulled, carried

    def _add_edges(self, t: int, p: Tensor, p_mean: Tensor, m: Tensor, u: Tensor) -> None:
        if self.grad_edges is None or self.grad_values is None:
            return
        outer, edges = self.grad_edges.outer, self.means.edges
        weight, products = edges_at(edges.weight, t - 1), outer(p, m)
        grad_edges = weight * (outer(p, u) + outer(p_mean, m))
        if edges.weighted_value is not None:
            grad_edges = grad_edges + edges_at(edges.weighted_value, t - 1) * products
        self.grad_edges.add(t - 1, grad_edges)
        self.grad_values.add(t - 1, weight * products)

    def _add_underflow(
        self, t: int, grad: Tensor, mass: Tensor, mean: Tensor, pulled: Tensor, carried: Tensor
    ) -> None:
        """Add the share of columns that underflow to `pulled` and `carried`, in place."""
        n, j, w = self.means.underflow.at(t)
        given = self.means.edges.mean_into(t - 1, self.mean[n, t - 1], w, j, n)
        given = given - w * mean[n, j].unsqueeze(-1)
        columns = w * grad[n, j].unsqueeze(-1) + given * mass[n, j].unsqueeze(-1)
        share = w * mass[n, j].unsqueeze(-1)
        columns, share = columns.to(pulled.dtype), share.to(carried.dtype)
        pulled.index_add_(0, n, columns)
        carried.index_add_(0, n, share)
        if self.grad_edges is not None and self.grad_values is not None:
            self.grad_edges.add_columns(t - 1, n, j, columns)
            self.grad_values.add_columns(t - 1, n, j, share)
