"""Viterbi, relaxed too, and its adjoint: one launch a sweep (kernels/segment_viterbi.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.edges import EdgeForm
from structdist.ops.problem import Best, Draw, Grads, Needs, Temperature
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.draws import grad_of_temperature, through_softmax
from structdist.ops.semi_markov.triton.draws import Prefixes, best_backtrack, relaxed_backtrack
from structdist.ops.semi_markov.triton.segment_gradients import SegmentGradients
from structdist.ops.semi_markov.triton.state import contiguous, moves_of, sweep
from structdist.ops.triton.best_path import gradient_of_best_moves


def viterbi(chain: SemiMarkovChain) -> Best:
    """The best path [N, T] and its score [N]. O(N T (K^2 + L K))."""
    chain = contiguous(chain)
    prefixes, _, score = _best_prefixes(chain)
    return Best(best_backtrack(chain, prefixes), score)


def relaxed_viterbi(chain: SemiMarkovChain, temperature: Temperature) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and where each best score comes from."""
    chain = contiguous(chain)
    prefixes, came_from, _ = _best_prefixes(chain)
    return relaxed_backtrack(chain, prefixes, None, temperature), came_from


def _best_prefixes(chain: SemiMarkovChain) -> tuple[Prefixes, Tensor, Tensor]:
    """Best scores of what ends and begins, where they come from [2, N, T, K], the best of all.

    What ends with a step comes from a length, less 1; what begins at a step comes from a label.
    """
    ends, begins = (torch.empty_like(chain.emissions, dtype=torch.float64) for _ in range(2))
    came_from = chain.lengths.new_empty(2, *ends.shape, dtype=torch.long)
    score = ends.new_empty(len(ends))
    sweep("segment_viterbi.forward", chain, [*chain, ends, begins, *came_from, score])
    return Prefixes(ends, begins, chain.emissions), came_from, score


def relaxed_viterbi_adjoint(
    chain: SemiMarkovChain,
    came_from: Tensor,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed path [1, N, T, K + L]. O(N T (K^2 + L K))."""
    chain = contiguous(chain)
    pulled = through_softmax(chain, draw, temperature, grad)
    emissions, begins = (torch.empty_like(chain.emissions) for _ in range(2))
    segments = SegmentGradients.of(chain, chain.segments if needs[2] else None)
    sweep(
        "segment_viterbi.adjoint",
        chain,
        [
            *(chain.lengths, *came_from, pulled.ends, pulled.sizes.contiguous(), draw.path),
            *(emissions, begins, *segments.arguments, len(draw.path)),
        ],
        SEGMENTS=needs[2],
    )
    transitions = None
    if needs[1]:
        transitions = pulled.transitions(EdgeForm.of(chain.transitions))
        transitions = transitions + gradient_of_best_moves(moves_of(chain), came_from[1], begins)
    of_temperature = grad_of_temperature(draw, temperature, grad, needs, chain.longest)
    return emissions, transitions, segments.summed(), of_temperature
