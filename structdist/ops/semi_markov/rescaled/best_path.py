"""Viterbi, relaxed too, and its adjoint, which follows the best choice before each."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.edges import EdgeForm, edges_at
from structdist.ops.problem import Best, Draw, Grads, Needs, Temperature
from structdist.ops.semi_markov.backtrack import Prefixes, best_backtrack
from structdist.ops.semi_markov.problem import SemiMarkovChain, ending_at, without_padding
from structdist.ops.semi_markov.rescaled.draws import grad_of_temperature, through_softmax
from structdist.ops.semi_markov.rescaled.moves import add_edges
from structdist.ops.semi_markov.rescaled.state import at_step
from structdist.ops.semi_markov.rescaled.sweep import SegmentGrads, sweep_back


def viterbi(chain: SemiMarkovChain) -> Best:
    """The best path [N, T] and its score [N]. O(N T (K^2 + L K))."""
    prefixes, _ = _best_prefixes(chain)
    score = at_step(prefixes.ends, chain.lengths - 1).amax(-1)
    score = torch.where(chain.lengths > 0, score, 0.0)
    return Best(best_backtrack(prefixes, 1.0).path[0], score)


def relaxed_viterbi(chain: SemiMarkovChain, temperature: Temperature) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and where each best score comes from."""
    prefixes, came_from = _best_prefixes(chain)
    draw = best_backtrack(prefixes, temperature)
    return Draw(draw.soft.to(chain.emissions.dtype), draw.path), came_from


def _best_prefixes(chain: SemiMarkovChain) -> tuple[Prefixes, Tensor]:
    """Best scores (float64) of what ends and begins, and [2, N, T, K] where they come from.

    What ends with a step comes from a first step, as counted from the earliest; what begins at a
    step comes from a label.
    """
    emissions, transitions, segments, lengths = without_padding(chain)
    num_steps = emissions.shape[1]
    steps = emissions.double()
    begins, ends = torch.zeros_like(steps), torch.zeros_like(steps)
    came_from = lengths.new_zeros(2, *emissions.shape)
    unfinished = begins[:, :0]
    for t in range(num_steps):
        kept = unfinished[:, max(t + 1 - chain.longest, 0) - t + unfinished.shape[1] :]
        unfinished = torch.cat([kept, begins[:, t, None]], 1) + steps[:, t, None]
        ends[:, t], came_from[0, :, t] = (unfinished + ending_at(segments, t + 1)).max(1)
        if t + 1 < num_steps:
            moved = ends[:, t, :, None] + edges_at(transitions, t)
            begins[:, t + 1], came_from[1, :, t + 1] = moved.max(1)
    return Prefixes(ends, begins, steps, transitions, segments, lengths), came_from


class _BestMoves:
    """Carries gradients of `begins` to the best label before each."""

    def __init__(self, transitions: Tensor, came_from: Tensor, needed: bool) -> None:
        self.came_from = came_from  # [N, T, K]
        self.total = torch.zeros_like(transitions) if needed else None

    def pull(self, t: int, grad_begins: Tensor) -> Tensor:
        label = self.came_from[:, t + 1]
        if self.total is not None:
            moves = grad_begins.new_zeros(*label.shape, label.shape[-1])
            moves.scatter_(1, label.unsqueeze(1), grad_begins.unsqueeze(1))
            add_edges(self.total, t, moves)
        return torch.zeros_like(grad_begins).scatter_add_(1, label, grad_begins)

    def transitions(self) -> Tensor | None:
        return self.total


def relaxed_viterbi_adjoint(
    chain: SemiMarkovChain,
    came_from: Tensor,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed path [1, N, T, K + L]. O(N T (K^2 + L K))."""
    pulled = through_softmax(chain, draw, temperature, grad)
    ends = pulled.ends
    segments = SegmentGrads(chain.segments) if needs[2] else None
    moves = _BestMoves(chain.transitions, came_from[1], needs[1])

    def shares_at(t: int) -> Tensor:
        count = min(chain.longest, t + 1)
        best = torch.nn.functional.one_hot(came_from[0, :, t], count)  # [N, K, l]
        return best.transpose(1, 2).to(ends.dtype)

    swept = sweep_back(ends, shares_at, moves, segments, pulled.segments_at)
    transitions = swept.transitions
    if transitions is not None:
        transitions = transitions + pulled.transitions(EdgeForm.of(chain.transitions))
    of_temperature = grad_of_temperature(draw, temperature, grad, needs, chain.longest)
    return swept.emissions, transitions, swept.segments, of_temperature
