"""The dynamic programs on plain tensors: one door, several backends.

Behind it, for each structure: the reference (textbook, differentiable to any order) and its fast
backends: `native` (compiled, on the CPU), `triton` (for GPUs) and `rescaled` (torch, every device).
Those of linear chains stand here, those of semi-Markov chains in `semi_markov`. `registry` picks
one for each problem, `autograd` puts their gradients into a graph.

A new backend is a folder with the functions of `backend.Backend`, and a name in the line that
registers its structure, below; with a `Layout` its functions are `operators` too, which compiled
graphs keep (without, those are left to the reference). A new structure is a problem, a reference
and one such line.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops import finite, native, operations, reference, rescaled, triton
from structdist.ops.autograd import Forward, answer, forward_by, run_forward
from structdist.ops.backend import AnyBackend
from structdist.ops.chain import Chain, in_chain
from structdist.ops.finite import bounded_scores, rounded, sum_of_scores
from structdist.ops.native.operators import as_operators as native_operators
from structdist.ops.noise import gumbel_noise
from structdist.ops.problem import Best, Draw, KBest, Problem, Temperature, Values
from structdist.ops.reference import enumerate_paths
from structdist.ops.registry import (
    BackendStatus,
    backend_for,
    backends,
    forced_backend,
    reference_for,
    register,
    use_backend,
)
from structdist.ops.rescaled.operators import as_operators as rescaled_operators
from structdist.ops.semi_markov import native as semi_markov_native
from structdist.ops.semi_markov import operators as semi_markov_operators
from structdist.ops.semi_markov import reference as semi_markov_reference
from structdist.ops.semi_markov import rescaled as semi_markov_rescaled
from structdist.ops.semi_markov import triton as semi_markov_triton
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.single_steps import SingleSteps
from structdist.ops.transforms import numbers_are_hidden, transforming
from structdist.ops.triton.operators import as_operators as triton_operators

__all__ = [
    "AnyBackend",
    "BackendStatus",
    "Best",
    "Chain",
    "Draw",
    "Forward",
    "KBest",
    "Problem",
    "SemiMarkovChain",
    "all_below_inf",
    "backend_for",
    "backends",
    "bounded_scores",
    "entropy",
    "enumerate_paths",
    "expectation",
    "forced_backend",
    "forward_by",
    "gumbel_ffbs",
    "gumbel_noise",
    "in_chain",
    "k_best",
    "log_partition",
    "log_prob",
    "marginals",
    "numbers_are_hidden",
    "path_scores",
    "relaxed_viterbi",
    "rounded",
    "run_forward",
    "sample_paths",
    "sum_of_scores",
    "transforming",
    "use_backend",
    "viterbi",
]

register(
    Chain,
    "linear chain",
    reference,
    native,
    triton,
    rescaled,
    operators=[native_operators, triton_operators, rescaled_operators],
)
register(
    SemiMarkovChain,
    "semi-Markov chain",
    semi_markov_reference,
    SingleSteps(native),
    semi_markov_native,
    semi_markov_triton,
    SingleSteps(rescaled),
    semi_markov_rescaled,
    operators=[
        semi_markov_operators.native_operators,
        semi_markov_operators.triton_operators,
        semi_markov_operators.rescaled_operators,
    ],
)


def all_below_inf(x: Tensor) -> bool:
    """Are all numbers of a tensor below +inf, and none NaN?"""
    can_look = x.is_contiguous() and native.library.can_look_at(x)
    return (native.library if can_look else finite).all_below_inf(x)


def _dtype(problem: Problem, exact: bool = False) -> torch.dtype:
    return torch.float64 if exact else problem.scores[0].dtype


def log_partition(problem: Problem, forward: Forward | None, *, exact: bool = False) -> Tensor:
    """[N], in the dtype of the scores or (`exact`) in float64."""
    operation = operations.LogPartition(_dtype(problem, exact))
    return answer(operation, problem, forward)[0]


def marginals(problem: Problem, forward: Forward | None, part: int) -> Tensor:
    """[N, ...]: the probability of each part of one kind, counted as the scores are."""
    return answer(operations.Marginals(_dtype(problem), part), problem, forward)[0]


def log_prob(problem: Problem, forward: Forward | None, paths: Tensor) -> Tensor:
    """[S, N]: of paths [S, N, T]; -inf where something forbids one, or it is none."""
    return answer(operations.LogProb(_dtype(problem)), problem, forward, paths)[0]


def entropy(problem: Problem, forward: Forward | None) -> Tensor:
    """[N]: in nats."""
    return answer(operations.Entropy(_dtype(problem)), problem, forward)[0]


def expectation(
    problem: Problem, forward: Forward | None, values: Values, *, exact: bool = False
) -> Tensor:
    """[N]: E of the sum of the values of all parts; one tensor for each of scores, None is 0."""
    operation = operations.Expectation(_dtype(problem, exact))
    return answer(operation, problem, forward, *values)[0]


def gumbel_ffbs(
    problem: Problem, forward: Forward | None, gumbel: Tensor, temperature: Temperature
) -> Draw:
    """Exact draws from Gumbel noise, and their relaxation."""
    number, tensor = _split(temperature)
    operation = operations.GumbelFFBS(_dtype(problem), number)
    return Draw(*answer(operation, problem, forward, gumbel, tensor))


def relaxed_viterbi(problem: Problem, temperature: Temperature) -> Draw:
    """The best path (S = 1) with relaxed back-tracking."""
    backend = None if transforming() else backend_for(problem)
    number, tensor = _split(temperature)
    operation = operations.RelaxedViterbi(_dtype(problem), number)
    no_state = None if backend is None else Forward(backend, ())
    return Draw(*answer(operation, problem, no_state, tensor))


def _split(temperature: Temperature) -> tuple[float | None, Tensor | None]:
    """A number and no tensor, or a tensor and no number."""
    return (None, temperature) if isinstance(temperature, Tensor) else (temperature, None)


# Without a gradient --------------------------------------------------------------------------


def sample_paths(problem: Problem, forward: Forward | None, uniform: Tensor) -> Tensor:
    """[S, N, T]: exact draws from uniform float64 noise [S, N, T]."""
    if forward is None:
        return reference_for(problem).sample_paths(_double(problem), uniform)
    with torch.no_grad():
        return forward.backend.sample_paths(problem, forward.state, uniform)


def viterbi(problem: Problem) -> Best:
    """The best path [N, T] and its score [N]."""
    backend = None if transforming() else backend_for(problem)
    if backend is None:
        return reference_for(problem).viterbi(_double(problem))
    with torch.no_grad():
        return backend.viterbi(problem)


def k_best(problem: Problem, k: int) -> KBest:
    """The k best distinct paths."""
    backend = None if transforming() else backend_for(problem)
    if backend is None:
        return reference_for(problem).k_best(_double(problem), k)
    with torch.no_grad():
        return backend.k_best(problem, k)


def path_scores(problem: Problem, paths: Tensor) -> Tensor:
    """[S, N] float64: of paths [S, N, T]; -inf where something forbids one, or it is none."""
    backend = None if transforming() else backend_for(problem)
    if backend is None:
        return reference_for(problem).path_scores(_double(problem), paths)
    with torch.no_grad():
        return backend.path_scores(problem, paths)


def _double(problem: Problem) -> Problem:
    """For the reference, which does not rescale, and needs the digits instead."""
    return problem.with_scores([x.double() for x in problem.scores])
