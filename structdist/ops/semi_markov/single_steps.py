"""Segments of one step alone (L = 1): such a semi-Markov chain is a linear chain, served as one.

A segment is a node. Its score adds up its emission and its own score, so both get the gradient of
the node. Paths are those of the linear chain. Relaxed draws [S, N, T, K + 1] have one column more:
the only length there is, which is certain.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import torch
from torch import Tensor

from structdist.ops.backend import Backend
from structdist.ops.chain import Chain, in_chain
from structdist.ops.edges import EdgeForm
from structdist.ops.finite import sum_of_scores
from structdist.ops.problem import (
    Best,
    Draw,
    Expected,
    ForwardState,
    Grads,
    KBest,
    Needs,
    Temperature,
    Values,
)
from structdist.ops.semi_markov.native import nodes
from structdist.ops.semi_markov.native.arguments import can_serve
from structdist.ops.semi_markov.problem import SemiMarkovChain

S = TypeVar("S", bound=ForwardState)


class SingleSteps(Generic[S]):
    """A backend of semi-Markov chains with L = 1, made of one of linear chains."""

    def __init__(self, backend: Backend[Chain, S]) -> None:
        self.NAME, self._backend = backend.NAME, backend

    def unsupported(self, problem: SemiMarkovChain) -> str | None:
        """It serves what the backend of linear chains would, where L = 1."""
        if problem.longest > 1:
            return f"it serves segments of one step, not of up to {problem.longest}"
        return self._backend.unsupported(_without_segments(problem))

    def filter(self, problem: SemiMarkovChain) -> tuple[S, bool | None]:
        return self._backend.filter(_as_nodes(problem))

    def log_partition(self, problem: SemiMarkovChain, state: S, dtype: torch.dtype) -> Tensor:
        return self._backend.log_partition(_without_segments(problem), state, dtype)

    def log_partition_adjoint(
        self, problem: SemiMarkovChain, state: S, grad: Tensor, needs: Needs
    ) -> Grads:
        chain = _as_nodes(problem)
        found = self._backend.log_partition_adjoint(chain, state, grad, _of_nodes(needs))
        return _of_segments(found, problem.segments, needs)

    def marginals(self, problem: SemiMarkovChain, state: S, part: int) -> Tensor:
        """Of labels, moves, segments or first steps; all but those of moves are those of nodes."""
        found = self._backend.marginals(_as_nodes(problem), state, int(part == 1))
        return found.unsqueeze(2) if part == 2 else found

    def entropy(self, problem: SemiMarkovChain, state: S) -> Expected:
        return self._backend.entropy(_as_nodes(problem), state)

    def entropy_adjoint(
        self, problem: SemiMarkovChain, state: S, expected: Expected, grad: Tensor, needs: Needs
    ) -> Grads:
        chain = _as_nodes(problem)
        found = self._backend.entropy_adjoint(chain, state, expected, grad, _of_nodes(needs))
        return _of_segments(found, problem.segments, needs)

    def expectation(self, problem: SemiMarkovChain, state: S, values: Values) -> Expected:
        return self._backend.expectation(
            _as_nodes(problem), state, _values_of_nodes(problem, values)
        )

    def expectation_adjoint(
        self,
        problem: SemiMarkovChain,
        state: S,
        values: Values,
        expected: Expected,
        grad: Tensor,
        needs: Needs,
    ) -> Grads:
        of_scores, of_values = needs[:3], needs[3:]
        wanted = (*_of_nodes(of_scores), *_of_nodes(of_values))
        chain, on_nodes = _as_nodes(problem), _values_of_nodes(problem, values)
        found = self._backend.expectation_adjoint(chain, state, on_nodes, expected, grad, wanted)
        scores = _of_segments(found[:2], problem.segments, of_scores)
        return *scores, *_of_segments(found[2:], values[2], of_values)

    def path_scores(self, problem: SemiMarkovChain, paths: Tensor) -> Tensor:
        return self._backend.path_scores(_as_nodes(problem), paths)

    def path_scores_adjoint(
        self, problem: SemiMarkovChain, paths: Tensor, grad: Tensor, needs: Needs
    ) -> Grads:
        chain = _without_segments(problem)
        found = self._backend.path_scores_adjoint(chain, paths, grad, _of_nodes(needs))
        return _of_segments(found, problem.segments, needs)

    def sample_paths(self, problem: SemiMarkovChain, state: S, uniform: Tensor) -> Tensor:
        return self._backend.sample_paths(_as_nodes(problem), state, uniform)

    def gumbel_ffbs(
        self, problem: SemiMarkovChain, state: S, gumbel: Tensor, temperature: Temperature
    ) -> Draw:
        noise = gumbel[..., :-1]
        draw = self._backend.gumbel_ffbs(_as_nodes(problem), state, noise, temperature)
        return _with_lengths(draw, problem)

    def gumbel_ffbs_adjoint(
        self,
        problem: SemiMarkovChain,
        state: S,
        draw: Draw,
        temperature: Temperature,
        grad: Tensor,
        needs: Needs,
    ) -> Grads:
        *found, of_temperature = self._backend.gumbel_ffbs_adjoint(
            _as_nodes(problem),
            state,
            _without_lengths(draw),
            temperature,
            grad[..., :-1],
            (*_of_nodes(needs[:3]), needs[3]),
        )
        return *_of_segments(found, problem.segments, needs), of_temperature

    def viterbi(self, problem: SemiMarkovChain) -> Best:
        return self._backend.viterbi(_as_nodes(problem))

    def relaxed_viterbi(
        self, problem: SemiMarkovChain, temperature: Temperature
    ) -> tuple[Draw, Tensor]:
        draw, known = self._backend.relaxed_viterbi(_as_nodes(problem), temperature)
        return _with_lengths(draw, problem), known

    def relaxed_viterbi_adjoint(
        self,
        problem: SemiMarkovChain,
        known: Tensor,
        draw: Draw,
        temperature: Temperature,
        grad: Tensor,
        needs: Needs,
    ) -> Grads:
        *found, of_temperature = self._backend.relaxed_viterbi_adjoint(
            _as_nodes(problem),
            known,
            _without_lengths(draw),
            temperature,
            grad[..., :-1],
            (*_of_nodes(needs[:3]), needs[3]),
        )
        return *_of_segments(found, problem.segments, needs), of_temperature

    def k_best(self, problem: SemiMarkovChain, k: int) -> KBest:
        return self._backend.k_best(_as_nodes(problem), k)


# Scores and values ---------------------------------------------------------------------------


def _without_segments(problem: SemiMarkovChain) -> Chain:
    """A linear chain that stands for this one where the scores of nodes do not matter."""
    return Chain(problem.emissions, problem.transitions, problem.lengths)


def _as_nodes(problem: SemiMarkovChain) -> Chain:
    """The linear chain whose nodes have the scores of steps and of segments."""
    emissions, transitions, segments, lengths = problem
    return Chain(_sum(emissions, _by_step(segments)), transitions, lengths)


def _values_of_nodes(
    problem: SemiMarkovChain, values: Values
) -> tuple[Tensor | None, Tensor | None]:
    """Values on nodes and edges, from those on steps, moves and segments."""
    steps, moves, segments = values
    if segments is None:
        return steps, moves
    own = _by_step(segments).expand(problem.emissions.shape)
    return own if steps is None else _sum(steps, own), moves


def _by_step(segments: Tensor) -> Tensor:
    """[1, 1, K], [N, 1, K] or [N, T, K]: of segments, to broadcast with what steps have."""
    form = EdgeForm.of(segments)
    if form is EdgeForm.PER_STEP:
        return segments.squeeze(2)
    return segments if form is EdgeForm.PER_CHAIN else segments.unsqueeze(0)


def _sum(steps: Tensor, segments: Tensor) -> Tensor:
    """Finite wherever both are."""
    if can_serve(steps) and segments.dtype == steps.dtype:
        return nodes.scores_of_nodes(steps, segments)
    return sum_of_scores(steps, segments)


# Gradients -----------------------------------------------------------------------------------


def _of_nodes(needs: Needs) -> tuple[bool, bool]:
    """Which gradients of nodes and edges are wanted, for those of steps, moves and segments."""
    steps, moves, segments = needs[:3]
    return steps or segments, moves


def _of_segments(found: Grads, segments: Tensor | None, needs: Needs) -> Grads:
    """Gradients of steps, moves and segments, from those of nodes and edges."""
    of_nodes, of_edges = found
    of_steps = of_nodes if needs[0] else None
    if of_nodes is None or segments is None or not needs[2]:
        return of_steps, of_edges, None
    return of_steps, of_edges, _gathered(of_nodes, EdgeForm.of(segments))


def _gathered(of_nodes: Tensor, form: EdgeForm) -> Tensor:
    """[1, K], [N, 1, K] or [N, T, 1, K]: what segments get of the gradient of nodes [N, T, K]."""
    if form is EdgeForm.PER_STEP:
        return of_nodes.unsqueeze(2)
    shared = form is EdgeForm.SHARED
    if can_serve(of_nodes):
        by_chain = nodes.sum_over_steps(of_nodes, 1 if shared else len(of_nodes))
    else:
        by_chain = of_nodes.sum((0, 1) if shared else 1, keepdim=True)
    return by_chain.squeeze(0) if shared else by_chain


# Relaxed draws -------------------------------------------------------------------------------


def _with_lengths(draw: Draw, problem: SemiMarkovChain) -> Draw:
    """With a last column: 1 within the chain, 0 beyond."""
    inside = in_chain(problem.lengths, draw.path.shape[2]).to(draw.soft.dtype)
    certain = inside.expand(draw.path.shape).unsqueeze(-1)
    return Draw(torch.cat([draw.soft, certain], -1), draw.path)


def _without_lengths(draw: Draw) -> Draw:
    return Draw(draw.soft[..., :-1].contiguous(), draw.path)
