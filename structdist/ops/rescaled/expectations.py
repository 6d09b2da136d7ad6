"""Conditional expectations, and their adjoint. The equations are in csrc/expect.cpp."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import (
    Chain,
    Expected,
    ExpectGrads,
    Filtered,
    edges_at,
    edges_into,
    full_precision,
    in_chain,
    without_padding,
)
from structdist.ops.rescaled.edges import (
    Doubtful,
    EdgeGrads,
    Edges,
    at_last_step,
    inverse_of,
    times,
)


def expect(chain: Chain, filtered: Filtered, nodes: Tensor, edges: Tensor | None) -> Expected:
    """Conditional means of node values [N, T, K] and edge values (in the transitions' form)."""
    chain, nodes, edges = _without_padding(chain, nodes, edges)
    with full_precision(chain.emissions.device):
        return _expect(chain, filtered, nodes, edges)


def _without_padding(
    chain: Chain, nodes: Tensor, edges: Tensor | None
) -> tuple[Chain, Tensor, Tensor | None]:
    values = Chain(nodes.double(), chain.transitions if edges is None else edges, chain.lengths)
    values = without_padding(values)
    edges = None if edges is None else values.transitions.to(chain.emissions.dtype)
    return without_padding(chain), values.emissions, edges


def _expect(chain: Chain, filtered: Filtered, nodes: Tensor, values: Tensor | None) -> Expected:
    emissions, transitions, lengths = chain
    active = in_chain(lengths, emissions.shape[1]).unsqueeze(-1)
    edges, doubtful = Edges(transitions, values), Doubtful(chain, filtered)
    means = [nodes[:, 0]]
    for t in range(1, emissions.shape[1]):
        p, p_mean, pivot = _weigh_means(filtered, means[-1], t - 1)
        total = times(p_mean, edges_at(edges.weight, t - 1))
        if edges.values is not None:
            total = total + times(p, edges_at(edges.weighted_value, t - 1))
        mean = (total * inverse_of(filtered.arrival[:, t])).double() + pivot
        mean = mean + edges.shift_at(t - 1)
        if doubtful.any:
            n, j, w = doubtful.at(t)
            given = means[-1][n] + _values_into(edges.values, t - 1, j, n)
            mean = mean.index_put((n, j), (w * given).sum(-1))
        means.append(torch.where(active[:, t], mean + nodes[:, t], means[-1]))
    last = torch.softmax(filtered.log_alpha[:, -1], -1)
    value = torch.where(lengths > 0, (last * means[-1]).nan_to_num().sum(-1), 0.0)
    return Expected(torch.stack(means, 1), value)


def _weigh_means(filtered: Filtered, mean: Tensor, t: int) -> tuple[Tensor, Tensor, Tensor]:
    """P and P (F - pivot) [N, K], and the pivot [N, 1]: the mean of the likeliest state."""
    p = filtered.weights[:, t]
    pivot = mean.gather(-1, p.argmax(-1, keepdim=True))
    return p, p * (mean - pivot).to(p.dtype), pivot


def _values_into(values: Tensor | None, t: int, state: Tensor, item: Tensor) -> Tensor | float:
    return 0.0 if values is None else edges_into(values, t, state, item)


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
    with full_precision(chain.emissions.device):
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
        self.edges, self.doubtful = Edges(chain.transitions, values), Doubtful(chain, filtered)
        self.grad_edges = EdgeGrads(chain.transitions)
        self.grad_values = EdgeGrads(chain.transitions)
        self.active = in_chain(chain.lengths, nodes.shape[1]).unsqueeze(-1)

    def run(self, grad_value: Tensor) -> ExpectGrads:
        num_steps = self.nodes.shape[1]
        start = at_last_step(self.filtered, self.chain.lengths, grad_value)
        surplus = (self.expected.mean - self.expected.value[:, None, None]).to(start.dtype)
        masses, grads = list(start.unbind(1)), list((start * surplus).unbind(1))
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
        p, p_mean, pivot = _weigh_means(self.filtered, mean[:, t - 1], t - 1)
        relative = torch.where(self.active[:, t], mean[:, t] - self.nodes[:, t] - pivot, 0.0)
        unshifted = (relative - self.edges.shift_at(t - 1)).to(dtype)
        inverse = torch.where(self.active[:, t], inverse_of(self.filtered.arrival[:, t]), 0.0)
        m, u = mass * inverse, (grad - mass * unshifted) * inverse
        weight = edges_at(self.edges.weight, t - 1)
        em, eu = (times(x, weight.transpose(-1, -2)) for x in (m, u))
        outer = self.grad_edges.outer
        products = outer(p, m)
        grad_edges = weight * (outer(p, u) + outer(p_mean, m))
        if self.edges.values is not None:
            weighted = edges_at(self.edges.weighted_value, t - 1)
            eu = eu + times(m, weighted.transpose(-1, -2))
            grad_edges = grad_edges + weighted * products
        self.grad_edges.add(t - 1, grad_edges)
        self.grad_values.add(t - 1, weight * products)
        pulled, carried = p * eu + p_mean * em, p * em
        if self.doubtful.any:
            self._leave_carefully(t, grad, mass, relative, pivot, pulled, carried)
        return pulled, carried

    def _leave_carefully(
        self,
        t: int,
        grad: Tensor,
        mass: Tensor,
        relative: Tensor,
        pivot: Tensor,
        pulled: Tensor,
        carried: Tensor,
    ) -> None:
        """Add the share of doubtful columns to `pulled` and `carried`, in place."""
        n, j, w = self.doubtful.at(t)
        given = self.expected.mean[n, t - 1] - pivot[n] - relative[n, j].unsqueeze(-1)
        given = given + _values_into(self.edges.values, t - 1, j, n)
        share = w * mass[n, j].unsqueeze(-1)
        columns = w * grad[n, j].unsqueeze(-1) + share * given
        columns, share = columns.to(pulled.dtype), share.to(carried.dtype)
        pulled.index_add_(0, n, columns)
        carried.index_add_(0, n, share)
        self.grad_edges.add_columns(t - 1, n, j, columns)
        self.grad_values.add_columns(t - 1, n, j, share)
