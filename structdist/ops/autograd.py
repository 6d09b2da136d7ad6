"""Analytic first-order gradients around the kernels.

Each `Function` below is given the chain and what the forward pass found (`Filtered`), so that one
forward pass serves them all. Its backward is one more sweep. Where a graph of the backward pass is
wanted (`create_graph=True`), the gradient is taken through `reference`, which autograd can follow
to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from structdist.ops import native, reference, rescaled
from structdist.ops.chain import (
    Chain,
    Draw,
    Expected,
    Filtered,
    FilterGrads,
    per_step,
    without_padding,
)


def transforming() -> bool:
    """Is this code inside a `torch.func` transform (vmap, grad, jvp, ...) or being traced?

    Kernels see numbers, which these do not show: they go through `reference`.
    """
    return bool(torch._C._are_functorch_transforms_active()) or torch.jit.is_tracing()


Grads = tuple[Tensor | None, ...]

# What follows the differentiable inputs in most `apply`s: lengths, and what the forward pass found.
NO_GRADS = (None,) * (1 + len(Filtered._fields))


def kernels_for(chain: Chain) -> ModuleType:
    """The compiled kernels where they are to be had, else the same in torch."""
    return native if chain.emissions.device.type == "cpu" and native.available() else rescaled


def _grads(
    plain: Callable[..., Tensor],
    inputs: Sequence[Tensor | None],
    grad: Tensor,
    analytic: Callable[[], Sequence[Tensor | None]],
) -> Sequence[Tensor | None]:
    """Analytic gradients or, where a graph of them is wanted, those of a plain twin in float64."""
    batched = torch._C._functorch.is_legacy_batchedtensor(grad)  # is_grads_batched=True
    if not torch.is_grad_enabled() and not transforming() and not batched:
        return analytic()
    with torch.enable_grad():
        # Views, so that an input which depends on another does not count towards its gradient.
        local = [None if x is None else x.view_as(x) for x in inputs]
        output = plain(*(None if x is None else x.double() for x in local))
    wanted = [x for x in local if x is not None and x.requires_grad]
    found: Sequence[Tensor] = [torch.zeros_like(x) for x in wanted]
    if output.requires_grad:  # it does not depend on transitions where there is but one step
        graph = torch.is_grad_enabled()
        found = torch.autograd.grad(
            output, wanted, grad.to(output.dtype), create_graph=graph, materialize_grads=True
        )
    by_input = iter(found)
    return [next(by_input) if x is not None and x.requires_grad else None for x in local]


class LogPartition(torch.autograd.Function):
    """[N] float64, with one sweep back for its gradient."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor, *f: Tensor
    ) -> Tensor:
        ctx.save_for_backward(emissions, transitions, lengths, *f)
        return Filtered(*f).log_z.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Grads:
        emissions, transitions, lengths, *f = ctx.saved_tensors
        chain = Chain(emissions, transitions, lengths)

        def plain(e: Tensor, a: Tensor) -> Tensor:
            return reference.log_partition(Chain(e, a, lengths))

        def analytic() -> FilterGrads:
            adjoint = kernels_for(chain).filter_adjoint
            return adjoint(chain, Filtered(*f), None, grad, with_edges=ctx.needs_input_grad[1])

        return (*_grads(plain, chain[:2], grad, analytic), *NO_GRADS)


class NodeMarginals(torch.autograd.Function):
    """[N, T, K]. Their gradient is that of the expectation of what weighs them."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor, *f: Tensor
    ) -> Tensor:
        ctx.save_for_backward(emissions, transitions, lengths, *f)
        return _marginals(Chain(emissions, transitions, lengths), Filtered(*f))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Grads:
        emissions, transitions, lengths, *f = ctx.saved_tensors
        chain = Chain(emissions, transitions, lengths)

        def plain(e: Tensor, a: Tensor) -> Tensor:
            return reference.node_marginals(Chain(e, a, lengths))

        def analytic() -> Grads:
            return _covariance(chain, Filtered(*f), grad, None)

        return (*_grads(plain, chain[:2], grad, analytic), *NO_GRADS)


def _marginals(chain: Chain, filtered: Filtered) -> Tensor:
    """[N, T, K]: the gradient of log Z."""
    adjoint, ones = kernels_for(chain).filter_adjoint, torch.ones_like(filtered.log_z)
    marginals = adjoint(chain, filtered, None, ones, with_edges=False).emissions
    return marginals.clamp_(max=1)  # not a rounding error more


def _covariance(chain: Chain, filtered: Filtered, nodes: Tensor, edges: Tensor | None) -> Grads:
    """Gradients, with respect to emissions and transitions, of the expectation of the values."""
    kernels = kernels_for(chain)
    expected = kernels.expect(chain, filtered, nodes, edges)
    ones = torch.ones_like(expected.value)
    return kernels.expect_adjoint(chain, filtered, nodes, edges, expected, ones)[:2]


class EdgeMarginals(torch.autograd.Function):
    """[N, T-1, K, K]: the probability of i given j after it, times that of j."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor, *f: Tensor
    ) -> Tensor:
        ctx.save_for_backward(emissions, transitions, lengths, *f)
        chain, filtered = Chain(emissions, transitions, lengths), Filtered(*f)
        after = _marginals(chain, filtered)[:, 1:].unsqueeze(-2)
        edges = per_step(without_padding(chain).transitions)
        moves = filtered.log_alpha[:, :-1, :, None] + edges  # [N, T-1, K, K]
        before = torch.softmax(moves, -2).to(after.dtype)
        return torch.where(after > 0, before * after, 0.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Grads:
        emissions, transitions, lengths, *f = ctx.saved_tensors

        def plain(e: Tensor, a: Tensor) -> Tensor:
            return reference.edge_marginals(Chain(e, a, lengths))

        def analytic() -> Grads:
            chain = Chain(emissions, per_step(transitions).expand(grad.shape), lengths)
            nodes = torch.zeros_like(emissions)
            grad_emissions, grad_edges = _covariance(chain, Filtered(*f), nodes, grad)
            assert grad_edges is not None
            summed = {2: (0, 1), 3: (1,), 4: ()}[transitions.dim()]
            return grad_emissions, grad_edges.sum(summed) if summed else grad_edges

        return (*_grads(plain, [emissions, transitions], grad, analytic), *NO_GRADS)


class Expectation(torch.autograd.Function):
    """[N] float64: of node values [N, T, K] and edge values, which may be None."""

    @staticmethod
    def forward(
        ctx: Any,
        emissions: Tensor,
        transitions: Tensor,
        nodes: Tensor,
        edges: Tensor | None,
        lengths: Tensor,
        *f: Tensor,
    ) -> Tensor:
        chain = Chain(emissions, transitions, lengths)
        expected = kernels_for(chain).expect(chain, Filtered(*f), nodes, edges)
        ctx.save_for_backward(emissions, transitions, nodes, edges, lengths, *expected, *f)
        return expected.value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Grads:
        emissions, transitions, nodes, edges, lengths, mean, value, *f = ctx.saved_tensors
        chain, expected = Chain(emissions, transitions, lengths), Expected(mean, value)

        def plain(e: Tensor, a: Tensor, n: Tensor, v: Tensor | None) -> Tensor:
            v = torch.zeros_like(a) if v is None else v
            return reference.expectation(Chain(e, a, lengths), n, v)

        def analytic() -> Grads:
            adjoint = kernels_for(chain).expect_adjoint
            grads = adjoint(chain, Filtered(*f), nodes, edges, expected, grad)
            return (*grads[:3], None if edges is None else grads.edges)

        inputs = [emissions, transitions, nodes, edges]
        return (*_grads(plain, inputs, grad, analytic), *NO_GRADS)


class Entropy(torch.autograd.Function):
    """[N] float64: the expectation of -log p, whose explicit dependence has no mean gradient.

    -log p(z) is split over steps with the forward pass's own normalisers: log_norm_t - emission_t
    on nodes, -transition on edges, and the log sum of the last step. What is carried is then, up to
    log_alpha_t, the conditional entropy of Algorithm 3 of Fu et al., and nothing large cancels.
    """

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor, *f: Tensor
    ) -> Tensor:
        chain, filtered = Chain(emissions, transitions, lengths), Filtered(*f)
        nodes = filtered.log_norm.unsqueeze(-1) - emissions
        nodes.masked_fill_(filtered.log_alpha == -torch.inf, 0.0)
        edges = torch.where(transitions == -torch.inf, 0.0, -transitions)
        expected = kernels_for(chain).expect(chain, filtered, nodes, edges)
        ctx.save_for_backward(emissions, transitions, lengths, nodes, edges, *expected, *f)
        last_step = filtered.log_z - filtered.log_norm.sum(1)
        return expected.value + last_step

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Grads:
        emissions, transitions, lengths, nodes, edges, mean, value, *f = ctx.saved_tensors
        chain, expected = Chain(emissions, transitions, lengths), Expected(mean, value)

        def plain(e: Tensor, a: Tensor) -> Tensor:
            return reference.entropy(Chain(e, a, lengths))

        def analytic() -> Grads:
            adjoint = kernels_for(chain).expect_adjoint
            return adjoint(chain, Filtered(*f), nodes, edges, expected, grad)[:2]

        return (*_grads(plain, chain[:2], grad, analytic), *NO_GRADS)


class GumbelFFBS(torch.autograd.Function):
    """Relaxed draws [S, N, T, K] and their paths [S, N, T]; noise [S, N, T, K] is an argument."""

    @staticmethod
    def forward(
        ctx: Any,
        emissions: Tensor,
        transitions: Tensor,
        gumbel: Tensor,
        temperature: float,
        lengths: Tensor,
        *f: Tensor,
    ) -> tuple[Tensor, Tensor]:
        chain = Chain(emissions, transitions, lengths)
        draw = kernels_for(chain).gumbel_ffbs(chain, Filtered(*f), gumbel, temperature)
        ctx.save_for_backward(emissions, transitions, lengths, gumbel, *draw, *f)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(draw.path)
        return draw.soft, draw.path

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> Grads:
        emissions, transitions, lengths, gumbel, soft, path, *f = ctx.saved_tensors
        chain, draw = Chain(emissions, transitions, lengths), Draw(soft, path)

        def plain(e: Tensor, a: Tensor) -> Tensor:
            return reference.gumbel_ffbs(Chain(e, a, lengths), gumbel, ctx.temperature).soft

        def analytic() -> FilterGrads:
            adjoint = kernels_for(chain).gumbel_ffbs_adjoint
            return adjoint(chain, Filtered(*f), draw, grad, ctx.temperature)

        return (*_grads(plain, chain[:2], grad, analytic), None, None, *NO_GRADS)


class RelaxedViterbi(torch.autograd.Function):
    """The relaxed best path [1, N, T, K] and its hard choices [1, N, T]."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        chain = Chain(emissions, transitions, lengths)
        draw, came_from = kernels_for(chain).relaxed_viterbi(chain, temperature)
        ctx.save_for_backward(emissions, transitions, lengths, came_from, *draw)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(draw.path)
        return draw.soft, draw.path

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> Grads:
        emissions, transitions, lengths, came_from, soft, path = ctx.saved_tensors
        chain, draw = Chain(emissions, transitions, lengths), Draw(soft, path)

        def plain(e: Tensor, a: Tensor) -> Tensor:
            return reference.relaxed_viterbi(Chain(e, a, lengths), ctx.temperature).soft

        def analytic() -> FilterGrads:
            adjoint = kernels_for(chain).relaxed_viterbi_adjoint
            return adjoint(chain, came_from, draw, grad, ctx.temperature)

        return (*_grads(plain, chain[:2], grad, analytic), None, None)
