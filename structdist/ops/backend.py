"""What a structure's dynamic programs must offer: once plainly, and as fast as one likes.

A backend is a module (or any object) with the functions of `Backend`; mypy checks each of them
against it. All shapes are those of `problem.py`: N structures, S samples. Float64 comes back where
the digits are needed; everything else has the dtype of the scores.

Nothing here leaves a graph behind. The forward state belongs to its backend: nothing else looks
inside. It depends on the scores alone, not on the form they are stored in. An adjoint gives one
gradient for each tensor of scores, then one for each further input (values, temperature), and None
where `needs` says that nobody wants it and it would cost something. Values may be on parts that
share no score where the scores are shared: each gradient has the shape of its own input.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from structdist.ops.problem import (
    Best,
    Draw,
    Expected,
    ForwardState,
    Grads,
    KBest,
    Needs,
    Problem,
    Temperature,
    Values,
)

P = TypeVar("P", bound=Problem, contravariant=True)
S = TypeVar("S", bound=ForwardState)


class Reference(Protocol[P]):
    """The textbook: plain torch, differentiable by autograd to any order, tested by enumeration."""

    def log_partition(self, problem: P, /) -> Tensor:
        """[N]: log of the sum of exp(score) over all outcomes."""

    def marginals(self, problem: P, part: int, /) -> Tensor:
        """[N, ...]: the probability of each part of one kind, none of them shared."""

    def entropy(self, problem: P, /) -> Tensor:
        """[N]: in nats."""

    def expectation(self, problem: P, values: Values, /) -> Tensor:
        """[N]: E of the sum of the values of all parts of the outcome."""

    def path_scores(self, problem: P, paths: Tensor, /) -> Tensor:
        """[S, N]: of paths [S, N, T]; -inf where something forbids them, or they are none."""

    def sample_paths(self, problem: P, uniform: Tensor, /) -> Tensor:
        """[S, N, T]: exact draws from uniform float64 noise [S, N, T]."""

    def gumbel_ffbs(self, problem: P, gumbel: Tensor, temperature: Temperature, /) -> Draw:
        """Exact draws from Gumbel noise, and their relaxation."""

    def viterbi(self, problem: P, /) -> Best:
        """The best path."""

    def relaxed_viterbi(self, problem: P, temperature: Temperature, /) -> Draw:
        """The best path (S = 1) with relaxed back-tracking."""

    def k_best(self, problem: P, k: int, /) -> KBest:
        """The k best distinct paths."""


class Backend(Protocol[P, S]):
    """The same, fast: forward passes whose state is kept, and analytic adjoints."""

    NAME: str

    def unsupported(self, problem: P, /) -> str | None:
        """Why this backend cannot serve the problem; None where it can."""

    def filter(self, problem: P, /) -> tuple[S, bool | None]:
        """The forward pass, to be given to the functions below.

        Also whether some structure has no allowed path, if that is known without waiting for it.
        """

    def log_partition(self, problem: P, state: S, dtype: torch.dtype, /) -> Tensor:
        """[N] in memory of its own, float64 or rounded; -inf where no path is allowed."""

    def log_partition_adjoint(
        self, problem: P, state: S, grad: Tensor, needs: Needs, /
    ) -> Grads: ...

    def marginals(self, problem: P, state: S, part: int, /) -> Tensor: ...

    def entropy(self, problem: P, state: S, /) -> Expected: ...

    def entropy_adjoint(
        self, problem: P, state: S, expected: Expected, grad: Tensor, needs: Needs, /
    ) -> Grads: ...

    def expectation(self, problem: P, state: S, values: Values, /) -> Expected: ...

    def expectation_adjoint(
        self,
        problem: P,
        state: S,
        values: Values,
        expected: Expected,
        grad: Tensor,
        needs: Needs,
        /,
    ) -> Grads: ...

    def path_scores(self, problem: P, paths: Tensor, /) -> Tensor:
        """[S, N] float64."""

    def path_scores_adjoint(
        self, problem: P, paths: Tensor, grad: Tensor, needs: Needs, /
    ) -> Grads:
        """From the gradient [S, N], which is 0 for paths that are forbidden."""

    def sample_paths(self, problem: P, state: S, uniform: Tensor, /) -> Tensor: ...

    def gumbel_ffbs(
        self, problem: P, state: S, gumbel: Tensor, temperature: Temperature, /
    ) -> Draw: ...

    def gumbel_ffbs_adjoint(
        self,
        problem: P,
        state: S,
        draw: Draw,
        temperature: Temperature,
        grad: Tensor,
        needs: Needs,
        /,
    ) -> Grads:
        """From the gradient of the relaxed draws; the last is that of the temperature, [S, N]."""

    def viterbi(self, problem: P, /) -> Best: ...

    def relaxed_viterbi(self, problem: P, temperature: Temperature, /) -> tuple[Draw, Tensor]:
        """The relaxed best path, and what its adjoint wants to know again."""

    def relaxed_viterbi_adjoint(
        self,
        problem: P,
        known: Tensor,
        draw: Draw,
        temperature: Temperature,
        grad: Tensor,
        needs: Needs,
        /,
    ) -> Grads: ...

    def k_best(self, problem: P, k: int, /) -> KBest: ...


AnyBackend = Backend[Any, Any]
