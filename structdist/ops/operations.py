"""The questions that can be asked about a problem, each with its gradient and its plain twin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from structdist.ops.autograd import Call, Operation
from structdist.ops.backend import Reference
from structdist.ops.problem import Draw, Expected, Grads, Needs, Temperature

Outputs = tuple[Sequence[Tensor], Sequence[Tensor]]


class LogPartition(Operation):
    """[N]: log of the sum of exp(score) over all outcomes."""

    def run(self, call: Call) -> Outputs:
        return (call.backend.log_partition(call.problem, call.state, self.dtype),), ()

    def adjoint(self, call: Call, known: Sequence[Tensor], grad: Tensor, needs: Needs) -> Grads:
        return call.backend.log_partition_adjoint(call.problem, call.state, grad, needs)

    def plain(self, reference: Reference[Any], problem: Any, extras: Any) -> Sequence[Tensor]:
        return (reference.log_partition(problem),)


class Marginals(Operation):
    """[N, ...]: the probability of each part of one kind.

    Their gradient is that of the expectation of what weighs them.
    """

    def __init__(self, dtype: torch.dtype, part: int) -> None:
        super().__init__(dtype)
        self.part = part

    def run(self, call: Call) -> Outputs:
        return (call.backend.marginals(call.problem, call.state, self.part),), ()

    def adjoint(self, call: Call, known: Sequence[Tensor], grad: Tensor, needs: Needs) -> Grads:
        backend, state, problem, _ = call
        values = problem.weighing(self.part, grad)
        expected, ones = backend.expectation(problem, state, values), grad.new_ones(len(grad))
        no_values = (False,) * len(values)
        wanted = (*needs, *no_values)
        grads = backend.expectation_adjoint(problem, state, values, expected, ones, wanted)
        return grads[: len(values)]

    def plain(self, reference: Reference[Any], problem: Any, extras: Any) -> Sequence[Tensor]:
        return (reference.marginals(problem, self.part),)


class LogProb(Operation):
    """[S, N], of paths [S, N, T]: -inf where something forbids one. Extras: the paths."""

    def run(self, call: Call) -> Outputs:
        (paths,) = call.extras
        assert paths is not None
        scores = call.backend.path_scores(call.problem, paths)
        log_z = call.backend.log_partition(call.problem, call.state, torch.float64)
        forbidden = scores == -torch.inf
        log_probs = (scores - log_z).clamp_(max=0)  # huge scores leave more than rounding errors
        return (torch.where(forbidden, -torch.inf, log_probs),), (forbidden,)

    def adjoint(self, call: Call, known: Sequence[Tensor], grad: Tensor, needs: Needs) -> Grads:
        backend, state, problem, (paths,) = call
        assert paths is not None
        needs = needs[: len(problem.scores)]
        of_paths = torch.where(known[0], 0.0, grad)
        gained = backend.path_scores_adjoint(problem, paths, of_paths, needs)
        lost = backend.log_partition_adjoint(problem, state, of_paths.sum(0), needs)
        pairs = zip(gained, lost, strict=True)
        return [None if a is None or b is None else a - b for a, b in pairs]

    def plain(self, reference: Reference[Any], problem: Any, extras: Any) -> Sequence[Tensor]:
        scores = reference.path_scores(problem, extras[0])
        forbidden = scores == -torch.inf
        allowed = torch.where(forbidden, 0.0, scores)
        found = allowed - reference.log_partition(problem)
        found = found - found.detach().clamp(min=0)  # in its value alone
        return (torch.where(forbidden, -torch.inf, found),)


class Entropy(Operation):
    """[N]: in nats. It lies in 0..n log K, hence is rounded without a look for overflow."""

    def run(self, call: Call) -> Outputs:
        expected = call.backend.entropy(call.problem, call.state)
        return (expected.value.to(self.dtype, copy=True),), expected

    def adjoint(self, call: Call, known: Sequence[Tensor], grad: Tensor, needs: Needs) -> Grads:
        expected = Expected(*known)
        return call.backend.entropy_adjoint(call.problem, call.state, expected, grad, needs)

    def plain(self, reference: Reference[Any], problem: Any, extras: Any) -> Sequence[Tensor]:
        return (reference.entropy(problem),)


class Expectation(Operation):
    """[N]: of the values of all parts. Extras: values, one tensor for each tensor of scores."""

    def run(self, call: Call) -> Outputs:
        expected = call.backend.expectation(call.problem, call.state, call.extras)
        return (expected.value.clone(),), expected

    def adjoint(self, call: Call, known: Sequence[Tensor], grad: Tensor, needs: Needs) -> Grads:
        backend, state, problem, values = call
        return backend.expectation_adjoint(problem, state, values, Expected(*known), grad, needs)

    def plain(self, reference: Reference[Any], problem: Any, extras: Any) -> Sequence[Tensor]:
        return (reference.expectation(problem, extras),)


class GumbelFFBS(Operation):
    """Relaxed draws and their paths [S, N, T]. Extras: noise, and temperatures if not a number."""

    def __init__(self, dtype: torch.dtype, temperature: float | None) -> None:
        super().__init__(dtype)
        self.temperature = temperature

    def _inputs(self, extras: Any) -> tuple[Tensor, Temperature]:
        gumbel, temperature = extras
        return gumbel, temperature if self.temperature is None else self.temperature

    def run(self, call: Call) -> Outputs:
        draw = call.backend.gumbel_ffbs(call.problem, call.state, *self._inputs(call.extras))
        return draw, draw

    def adjoint(self, call: Call, known: Sequence[Tensor], grad: Tensor, needs: Needs) -> Grads:
        backend, state, problem, extras = call
        _, temperature = self._inputs(extras)
        *of_scores, _, of_temperature = needs
        *grads, grad_temperature = backend.gumbel_ffbs_adjoint(
            problem, state, Draw(*known), temperature, grad, (*of_scores, of_temperature)
        )
        return (*grads, None, grad_temperature)

    def plain(self, reference: Reference[Any], problem: Any, extras: Any) -> Sequence[Tensor]:
        return reference.gumbel_ffbs(problem, *self._inputs(extras))


class RelaxedViterbi(Operation):
    """The relaxed best path and its hard choices, S = 1. Extras: temperatures if not a number."""

    def __init__(self, dtype: torch.dtype, temperature: float | None) -> None:
        super().__init__(dtype)
        self.temperature = temperature

    def _temperature(self, extras: Any) -> Temperature:
        return extras[0] if self.temperature is None else self.temperature

    def run(self, call: Call) -> Outputs:
        temperature = self._temperature(call.extras)
        draw, known = call.backend.relaxed_viterbi(call.problem, temperature)
        return draw, (*draw, known)

    def adjoint(self, call: Call, known: Sequence[Tensor], grad: Tensor, needs: Needs) -> Grads:
        soft, path, of_backend = known
        return call.backend.relaxed_viterbi_adjoint(
            call.problem, of_backend, Draw(soft, path), self._temperature(call.extras), grad, needs
        )

    def plain(self, reference: Reference[Any], problem: Any, extras: Any) -> Sequence[Tensor]:
        return reference.relaxed_viterbi(problem, self._temperature(extras))
