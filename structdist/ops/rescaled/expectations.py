"""Expectations, entropies, and their adjoint. The equations are in csrc/expect.cpp."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import (
    Chain,
    full_precision,
    transitions_without_padding,
    without_padding,
)
from structdist.ops.edges import sum_to_form
from structdist.ops.problem import Expected, Grads, Needs, Values
from structdist.ops.rescaled.conditionals import Conditionals
from structdist.ops.rescaled.edges import Edges
from structdist.ops.rescaled.state import Filtered, at_last_step, last_step, narrowed


def entropy(chain: Chain, filtered: Filtered) -> Expected:
    """In nats, with the conditional entropies of Algorithm 3 of Fu et al. O(N T K^2)."""
    with full_precision(chain.emissions.device):
        return _Means(chain, filtered).expect()


def entropy_adjoint(
    chain: Chain, filtered: Filtered, expected: Expected, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of the entropy [N]. O(N T K^2)."""
    with full_precision(chain.emissions.device):
        wanted = (True, needs[1], False, False)
        adjoint = _Adjoint(_Means(chain, filtered), expected, grad, wanted)
        return adjoint.of_nodes(), adjoint.of_edges() if needs[1] else None


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
        adjoint = _Adjoint(_means_of(chain, filtered, values), expected, grad, needs)
        edges = sum_to_form(adjoint.of_edges(), chain.transitions) if needs[1] else None
        node_values = adjoint.of_node_values() if needs[2] else None
        edge_values = None
        if needs[3] and values[1] is not None:
            edge_values = sum_to_form(adjoint.of_edge_values(), values[1])
        return adjoint.of_nodes() if needs[0] else None, edges, node_values, edge_values


def _means_of(chain: Chain, filtered: Filtered, values: Values) -> _Means:
    dtype, no_edges = chain.emissions.dtype, values[1] is None
    chain, (nodes, edges) = chain.with_values(values)
    nodes, edges, _ = without_padding(Chain(nodes.double(), edges, chain.lengths))
    return _Means(chain, filtered, nodes, None if no_edges else edges.to(dtype))


class _Means:
    """Conditional means F of values, or without values on nodes conditional entropies.

    Products see means relative to that of the likeliest state (the pivot), which are small.
    """

    def __init__(
        self,
        chain: Chain,
        filtered: Filtered,
        nodes: Tensor | None = None,
        edge_values: Tensor | None = None,
    ) -> None:
        self.lengths, self.is_entropy = chain.lengths, nodes is None
        transitions = transitions_without_padding(chain)
        self.edges = Edges(transitions, edge_values, surprisal=self.is_entropy)
        self.conditionals = Conditionals(self.edges, filtered, chain.lengths)
        self.weights, self.likeliest = filtered.weights, filtered.weights.argmax(-1, keepdim=True)
        self.nodes = None if nodes is None else nodes.transpose(0, 1)  # [T, N, K]
        self.shift = self.edges.shift(filtered.incoming[1:])

    def expect(self) -> Expected:
        means = self._relative_means()
        pivots = means.gather(-1, self.likeliest)
        means[1:] += pivots[:-1].cumsum(0)
        if self.is_entropy:
            means.clamp_(min=0)
        value = (self.conditionals.last * self.at_end(means)).sum(-1)
        return Expected(torch.where(self.lengths > 0, value, 0.0), means)

    def at_end(self, means: Tensor) -> Tensor:
        """[N, K]: the mean of the whole path, given its last state; 0 where that is impossible."""
        last, mean = self.conditionals.last, last_step(means, self.lengths)
        if self.is_entropy:
            mean = mean - last.log()
        return torch.where(last == 0, 0.0, mean)

    def _relative_means(self) -> Tensor:
        """[T, N, K] float64: F less the pivot of the step before."""
        means, limit = self._without_means_before(), torch.finfo(self.weights.dtype).max / 2**20
        f, p, inverse = means.unbind(), self.weights.unbind(), self.conditionals.inverse.unbind()
        weighed, total = (torch.empty_like(p[0]) for _ in range(2))
        (left,), (right,) = self.edges.rows(weighed[None]), self.edges.rows(total[None])
        product, likeliest = self.edges.product, self.likeliest.unbind()
        for t, matrix in enumerate(self.edges.matrices(len(f) - 1), 1):
            pivot = f[t - 1].gather(-1, likeliest[t - 1])
            torch.sub(f[t - 1], pivot, out=weighed)
            if not self.is_entropy:  # values may be huge
                weighed.clamp_(-limit, limit)
            weighed.mul_(p[t - 1])
            product(left, matrix, out=right)
            f[t].addcmul_(total, inverse[t])
            if self.conditionals.underflow is not None:
                self._redo_underflow(t, f[t - 1] - pivot, f[t])
        return means

    def _without_means_before(self) -> Tensor:
        """[T, N, K] float64: what each step adds to F by itself."""
        means = torch.zeros_like(self.weights, dtype=torch.float64)
        added, before = means[1:], self.weights[:-1]
        if self.is_entropy:
            added += self.edges.products(torch.special.entr(before), self.edges.weight)
        if self.edges.weighted_value is not None:
            added += self.edges.products(before, self.edges.weighted_value)
        added *= self.conditionals.inverse[1:]
        added += self.shift
        return means if self.nodes is None else means.add_(self.nodes)

    def _redo_underflow(self, t: int, before: Tensor, here: Tensor) -> None:
        """Means into states whose sums underflow, from means before them (less the pivot)."""
        assert self.conditionals.underflow is not None
        item, state, w = self.conditionals.underflow.at(t)
        mean = self.edges.mean_into(t - 1, before[item], w, state, item).sum(-1)
        here[item, state] = mean if self.nodes is None else mean + self.nodes[t][item, state]


class _Adjoint:
    """Carries M, the gradient of the means, and then G, that of log weights, from last to first."""

    def __init__(self, means: _Means, expected: Expected, grad: Tensor, needs: Needs) -> None:
        self.means, self.edges, self.conditionals = means, means.edges, means.conditionals
        weights, dtype = means.weights, means.weights.dtype
        pivots = expected.given.gather(-1, means.likeliest)
        self.relative = expected.given - pivots  # to the pivot of the step
        self.p_mean = weights * narrowed(self.relative, dtype)
        if means.is_entropy:
            self.p_mean += torch.special.entr(weights)
        self.into = expected.given[1:] - pivots[:-1]  # less that of the step before
        if means.nodes is not None:
            self.into -= means.nodes[1:]

        last = (self.conditionals.last * grad.unsqueeze(-1)).to(dtype)
        surplus = means.at_end(expected.given) - expected.value.unsqueeze(-1)
        surplus = narrowed(torch.where(self.conditionals.last == 0, 0.0, surplus), dtype)
        start, start_of_log = (
            at_last_step(x, means.lengths, len(weights)) for x in (last, last * surplus)
        )
        self.mass = self.conditionals.sweep(start, with_edges=needs[3])
        self.swept = self.conditionals.sweep(
            self._upstream(start_of_log),
            less=self._less(),
            also=self._added_by_columns,
            with_edges=needs[1],
        )

    def _upstream(self, start: Tensor) -> Tensor:
        """What M adds to G at the state before: the mean there, and what edges carry."""
        upstream = torch.addcmul(start, self.p_mean, self.mass.pulled)
        if self.edges.weighted_value is not None:
            carried = self.edges.weighted_value.transpose(-1, -2)
            upstream[:-1].addcmul_(
                self.means.weights[:-1], self.edges.products(self.mass.scaled[1:], carried)
            )
        return upstream

    def _less(self) -> Tensor:
        """What M takes off G at the state after: the mean into it, as products see it."""
        less = self.mass.scaled.clone()
        less[1:] *= narrowed(self.into - self.means.shift, less.dtype)
        return less

    def _added_by_columns(self, t: int, item: Tensor, state: Tensor, w: Tensor) -> Tensor:
        """What M adds to G along columns that underflow."""
        given = self.edges.mean_into(t - 1, self.relative[t - 1][item], w, state, item)
        given.addcmul_(w, self.into[t - 1][item, state].unsqueeze(-1), value=-1)
        return given.mul_(self.mass.grad[t][item, state].unsqueeze(-1))

    def of_nodes(self) -> Tensor:
        return self.swept.grad.transpose(0, 1).contiguous()

    def of_node_values(self) -> Tensor:
        return self.mass.grad.transpose(0, 1).contiguous()

    def of_edges(self) -> Tensor:
        """In the form of the edges, like the gradient of their values."""
        outer, weights, m = self.edges.outer_products, self.means.weights, self.mass.scaled[1:]
        total = self.conditionals.sum_of_moves(self.swept)
        total.addcmul_(self.edges.weight, outer(self.p_mean[:-1], m))
        if self.edges.weighted_value is not None:
            total.addcmul_(self.edges.weighted_value, outer(weights[:-1], m))
        return total

    def of_edge_values(self) -> Tensor:
        return self.conditionals.sum_of_moves(self.mass)
