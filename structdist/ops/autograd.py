"""Analytic first-order gradients around the kernels.

Each `Function` below is given the chain and what the forward pass found (`Filtered`), so that one
forward pass serves them all. Its backward is one more sweep. Where a graph of the backward pass is
wanted (`create_graph=True`), the gradient is taken through `reference`, which autograd can follow
to any order.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from structdist.ops import native, reference, rescaled
from structdist.ops.chain import Chain, Expected, Filtered
from structdist.ops.reference import Draw

Grads = tuple[Tensor | None, ...]


def kernels_for(chain: Chain) -> ModuleType:
    """The compiled kernels where they are to be had, else the same in torch."""
    return native if chain.emissions.device.type == "cpu" and native.available() else rescaled


def _reference_grads(
    function: Callable[..., Tensor], inputs: list[Tensor | None], grad: Tensor
) -> list[Tensor | None]:
    """Gradients of a plain function at the inputs, with a graph."""
    with torch.enable_grad():
        wanted = [x for x in inputs if x is not None and x.requires_grad]
        output = function(*inputs)
        found = torch.autograd.grad(
            output, wanted, grad.to(output.dtype), create_graph=True, allow_unused=True
        )
    by_input = iter(found)
    return [next(by_input) if x is not None and x.requires_grad else None for x in inputs]


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
        if torch.is_grad_enabled():
            plain = lambda e, a: reference.log_partition(Chain(e, a, lengths))  # noqa: E731
            found = _reference_grads(plain, [emissions, transitions], grad)
        else:
            chain = Chain(emissions, transitions, lengths)
            found = list(kernels_for(chain).filter_adjoint(chain, Filtered(*f), None, grad))
        return (*found, *[None] * 6)


class NodeMarginals(torch.autograd.Function):
    """[N, T, K]. Their gradient is that of the expectation of what weighs them."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor, *f: Tensor
    ) -> Tensor:
        ctx.save_for_backward(emissions, transitions, lengths, *f)
        chain = Chain(emissions, transitions, lengths)
        ones = torch.ones_like(Filtered(*f).log_z)
        return kernels_for(chain).filter_adjoint(chain, Filtered(*f), None, ones).emissions

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Grads:
        emissions, transitions, lengths, *f = ctx.saved_tensors
        if torch.is_grad_enabled():
            plain = lambda e, a: reference.node_marginals(Chain(e, a, lengths))  # noqa: E731
            found = _reference_grads(plain, [emissions, transitions], grad)
        else:
            found = _covariance(Chain(emissions, transitions, lengths), Filtered(*f), grad, None)
        return (*found, *[None] * 6)


def _covariance(
    chain: Chain, filtered: Filtered, nodes: Tensor, edges: Tensor | None
) -> list[Tensor | None]:
    """Gradients, with respect to emissions and transitions, of the expectation of the values."""
    kernels = kernels_for(chain)
    expected = kernels.expect(chain, filtered, nodes, edges)
    ones = torch.ones_like(expected.value)
    return list(kernels.expect_adjoint(chain, filtered, nodes, edges, expected, ones)[:2])


class EdgeMarginals(torch.autograd.Function):
    """[N, T-1, K, K]: the probability of i given j after it, times that of j."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor, *f: Tensor
    ) -> Tensor:
        ctx.save_for_backward(emissions, transitions, lengths, *f)
        chain, filtered = Chain(emissions, transitions, lengths), Filtered(*f)
        ones = torch.ones_like(filtered.log_z)
        after = kernels_for(chain).filter_adjoint(chain, filtered, None, ones).emissions[:, 1:]
        edges = reference.without_padding(chain).transitions
        edges = edges.unsqueeze(1) if edges.dim() == 3 else edges
        moves = filtered.log_alpha[:, :-1, :, None] + edges  # [N, T-1, K, K]
        before = torch.softmax(moves, -2).to(after.dtype)
        return torch.where(after.unsqueeze(-2) > 0, before * after.unsqueeze(-2), 0.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Grads:
        emissions, transitions, lengths, *f = ctx.saved_tensors

        def plain(e: Tensor, a: Tensor) -> Tensor:
            return reference.edge_marginals(Chain(e, a, lengths))

        if torch.is_grad_enabled():
            found = _reference_grads(plain, [emissions, transitions], grad)
        else:
            zeros = torch.zeros_like(emissions)
            chain = Chain(emissions, _vary_with_time(transitions, grad.shape), lengths)
            found = _covariance(chain, Filtered(*f), zeros, grad)
            found[1] = _sum_to_form(found[1], transitions)
        return (*found, *[None] * 6)


def _vary_with_time(edges: Tensor, shape: torch.Size) -> Tensor:
    return (edges.unsqueeze(1) if edges.dim() == 3 else edges).expand(shape)


def _sum_to_form(edges: Tensor | None, form: Tensor) -> Tensor:
    """Time-varying edges [N, T-1, K, K] summed to the form of others."""
    assert edges is not None
    return {2: lambda x: x.sum((0, 1)), 3: lambda x: x.sum(1), 4: lambda x: x}[form.dim()](edges)


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

        def plain(e: Tensor, a: Tensor, n: Tensor, v: Tensor | None) -> Tensor:
            v = torch.zeros_like(a) if v is None else v
            return reference.expectation(Chain(e, a, lengths), n, v)

        if torch.is_grad_enabled():
            found = _reference_grads(plain, [emissions, transitions, nodes, edges], grad)
        else:
            chain, expected = Chain(emissions, transitions, lengths), Expected(mean, value)
            kernels = kernels_for(chain)
            grads = kernels.expect_adjoint(chain, Filtered(*f), nodes, edges, expected, grad)
            found = [*grads[:3], None if edges is None else grads.edges]
        return (*found, *[None] * 6)


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
        nodes, edges = _surprise(chain, filtered)
        expected = kernels_for(chain).expect(chain, filtered, nodes, edges)
        ctx.save_for_backward(emissions, transitions, lengths, nodes, edges, *expected, *f)
        last_step = filtered.log_z - filtered.log_norm.sum(1)
        return expected.value + last_step

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Grads:
        emissions, transitions, lengths, nodes, edges, mean, value, *f = ctx.saved_tensors
        chain = Chain(emissions, transitions, lengths)
        if torch.is_grad_enabled():
            plain = lambda e, a: reference.entropy(Chain(e, a, lengths))  # noqa: E731
            found = _reference_grads(plain, [emissions, transitions], grad)
        else:
            expected, kernels = Expected(mean, value), kernels_for(chain)
            grads = kernels.expect_adjoint(chain, Filtered(*f), nodes, edges, expected, grad)
            found = list(grads[:2])
        return (*found, *[None] * 6)


def _surprise(chain: Chain, filtered: Filtered) -> tuple[Tensor, Tensor]:
    emissions, transitions, _ = chain
    nodes = filtered.log_norm.unsqueeze(-1) - emissions
    nodes.masked_fill_(filtered.log_alpha == -torch.inf, 0.0)
    return nodes, torch.where(transitions == -torch.inf, 0.0, -transitions)


class GumbelFFBS(torch.autograd.Function):
    """Relaxed draws [S, N, T, K] and their paths [S, N, T]; noise [S, N, T, K] is an argument."""

    @staticmethod
    def forward(
        ctx: Any,
        emissions: Tensor,
        transitions: Tensor,
        lengths: Tensor,
        gumbel: Tensor,
        temperature: float,
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
        chain = Chain(emissions, transitions, lengths)
        if torch.is_grad_enabled():

            def plain(e: Tensor, a: Tensor) -> Tensor:
                return reference.gumbel_ffbs(Chain(e, a, lengths), gumbel, ctx.temperature).soft

            found = _reference_grads(plain, [emissions, transitions], grad)
        else:
            kernels = kernels_for(chain)
            found = list(
                kernels.gumbel_ffbs_adjoint(
                    chain, Filtered(*f), Draw(soft, path), grad, ctx.temperature
                )
            )
        return (*found, *[None] * 8)


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
        chain = Chain(emissions, transitions, lengths)
        if torch.is_grad_enabled():

            def plain(e: Tensor, a: Tensor) -> Tensor:
                return reference.relaxed_viterbi(Chain(e, a, lengths), ctx.temperature).soft

            found = _reference_grads(plain, [emissions, transitions], grad)
        else:
            adjoint = kernels_for(chain).relaxed_viterbi_adjoint
            found = list(adjoint(chain, came_from, Draw(soft, path), grad, ctx.temperature))
        return (*found, None, None)
