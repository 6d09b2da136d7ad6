"""One autograd layer for all structures and backends.

An `Operation` says how a backend finds an answer and its gradient, and what the plain twin of both
is. `answer` runs it: without a graph where none is wanted, else as a node of its own, whose
backward is the backend's analytic adjoint. Where a graph of the backward pass is wanted
(`create_graph=True`), the gradient is taken through the reference, which autograd can follow to any
order. Inside a `torch.func` transform or a trace everything goes through the reference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structdist.ops.backend import AnyBackend, Reference
from structdist.ops.finite import rounded
from structdist.ops.problem import ForwardState, Grads, Needs, Problem
from structdist.ops.registry import backend_for, reference_for
from structdist.ops.transforms import transforming

Tensors = tuple[Tensor | None, ...]


class Forward(NamedTuple):
    """The forward pass of a problem: which backend made it, and its state. Numbers, no graph."""

    backend: AnyBackend
    state: ForwardState
    has_impossible: bool | None = None  # is there a structure without a path, if that is known


def run_forward(problem: Problem) -> Forward | None:
    """The forward pass, once for all answers; None where the reference is to give them."""
    return None if transforming() else forward_by(backend_for(problem), problem)


def forward_by(backend: AnyBackend | None, problem: Problem) -> Forward | None:
    """The forward pass by a backend; None by the reference, whose answers make their own."""
    if backend is None:
        return None
    if torch.compiler.is_compiling():  # operators, which torch would look for gradients of
        problem = problem.with_scores([x.detach() for x in problem.scores])
    return Forward(backend, *backend.filter(problem))


class Call(NamedTuple):
    """What an operation is asked about: a problem, its forward pass, and further tensors."""

    backend: AnyBackend
    state: Any
    problem: Any
    extras: Tensors


class Operation(ABC):
    """One question. Its answers are differentiable by the scores and, for some, by the extras.

    Of several outputs only the first has a gradient; it is given in `dtype`.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def rounded(self, outputs: Sequence[Tensor]) -> Sequence[Tensor]:
        """The outputs, the first of them in the dtype it is to have."""
        if outputs[0].dtype == self.dtype:
            return outputs
        first, *others = outputs
        return (rounded(first, self.dtype), *others)

    @abstractmethod
    def run(self, call: Call) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """The outputs, and what the adjoint wants to know again."""

    @abstractmethod
    def adjoint(self, call: Call, known: Sequence[Tensor], grad: Tensor, needs: Needs) -> Grads:
        """Gradients by the scores, then by the extras (those left out have none)."""

    @abstractmethod
    def plain(self, reference: Reference[Any], problem: Any, extras: Any) -> Sequence[Tensor]:
        """The outputs, by the reference."""


def answer(
    operation: Operation, problem: Problem, forward: Forward | None, *extras: Tensor | None
) -> Sequence[Tensor]:
    """The outputs of an operation, given the forward pass if there is one."""
    inputs = (*problem.scores, *extras)
    if forward is None:
        outputs = operation.plain(reference_for(problem), *_double(problem, inputs))
        return operation.rounded(outputs)
    call = Call(forward.backend, forward.state, problem, extras)
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs):
        apply = _Analytic.apply if torch.compiler.is_compiling() else _apply_untransformed
        outputs = apply(operation, call, *inputs)
        return (outputs,) if isinstance(outputs, Tensor) else outputs
    with torch.no_grad():  # whatever stands around the kernels
        outputs, _ = operation.run(call)
        return operation.rounded(outputs)


def _double(problem: Problem, inputs: Tensors) -> tuple[Any, Tensors]:
    """Problem and extras in float64: the reference does not rescale, and needs the digits."""
    wide = [x.double() if x is not None and x.is_floating_point() else x for x in inputs]
    count = len(problem.scores)
    return type(problem)(*wide[:count], problem.lengths), tuple(wide[count:])  # type: ignore[call-arg]


class _Analytic(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, operation: Operation, call: Call, *inputs: Tensor | None) -> Any:
        outputs, known = operation.run(call)
        first, *others = operation.rounded(outputs)
        if others:
            ctx.mark_non_differentiable(*others)
        backend, state, problem, extras = call
        ctx.operation, ctx.backend, ctx.lengths = operation, backend, problem.lengths
        ctx.make_problem, ctx.make_state = type(problem), type(state)
        ctx.counts = len(inputs) - len(extras), len(inputs), len(inputs) + len(state)
        ctx.save_for_backward(*inputs, *state, *known)
        return (first, *others) if others else first

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        num_scores, num_inputs, num_before_known = ctx.counts
        saved, needs = ctx.saved_tensors, ctx.needs_input_grad[2:]
        inputs, known = saved[:num_inputs], saved[num_before_known:]
        problem = ctx.make_problem(*inputs[:num_scores], ctx.lengths)
        if wants_reference(grad):
            found = _plain_gradients(ctx.operation, problem, inputs, grad, needs)
        else:
            state = ctx.make_state(*saved[num_inputs:num_before_known])
            call = Call(ctx.backend, state, problem, inputs[num_scores:])
            found = ctx.operation.adjoint(call, known, grad, needs)
        missing = (None,) * (num_inputs - len(found))
        return (None, None, *found, *missing)


def untransformed(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """The `apply` of a function, past torch's own, which looks for transforms in each input.

    For those who have made sure that there are none.
    """
    return super(torch.autograd.Function, function).apply  # type: ignore[misc]


_apply_untransformed = untransformed(_Analytic)  # `Forward` says that there are no transforms


def wants_reference(grad: Tensor) -> bool:
    """Is a graph of the gradient wanted, or are many gradients taken at once?"""
    if torch.compiler.is_compiling():
        return False  # the compiler asks for first-order gradients alone
    batched = torch._C._functorch.is_legacy_batchedtensor(grad)  # is_grads_batched=True
    return torch.is_grad_enabled() or transforming() or batched


def _plain_gradients(
    operation: Operation, problem: Problem, inputs: Tensors, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of the plain twin in float64, with a graph of their own where that is wanted."""
    with torch.enable_grad():
        # Views, so that an input which depends on another does not count towards its gradient.
        local = tuple(None if x is None else x.view_as(x) for x in inputs)
        output = operation.plain(reference_for(problem), *_double(problem, local))[0]
    wanted = [x for x, need in zip(local, needs, strict=True) if need and x is not None]
    found: Sequence[Tensor] = [torch.zeros_like(x) for x in wanted]
    if output.requires_grad:  # it does not depend on transitions where there is but one step
        found = torch.autograd.grad(
            output,
            wanted,
            grad.to(output.dtype),
            create_graph=torch.is_grad_enabled(),
            materialize_grads=True,
        )
    by_input = iter(found)
    return [next(by_input) if need else None for need in needs]
