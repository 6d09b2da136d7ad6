"""Viterbi, relaxed too, and its adjoint: one launch a sweep (kernels/viterbi.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, in_chain
from structdist.ops.edges import EdgeForm
from structdist.ops.problem import Best, Draw, Grads, Needs, Temperature
from structdist.ops.rescaled.backtrack import through_softmax
from structdist.ops.rescaled.state import grad_of_temperature
from structdist.ops.triton.draws import relaxed_backtrack
from structdist.ops.triton.launching import Tiles, launch
from structdist.ops.triton.state import contiguous, sweep


def viterbi(chain: Chain) -> Best:
    """The best path [N, T] and its score [N]. O(N T K^2)."""
    chain = contiguous(chain)
    prefix, _, score = _best_prefixes(chain)
    return Best(relaxed_backtrack(chain, prefix, None, 1.0).path[0], score)


def relaxed_viterbi(chain: Chain, temperature: Temperature) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and where each best score comes from. O(N T K^2)."""
    chain = contiguous(chain)
    prefix, came_from, _ = _best_prefixes(chain)
    return relaxed_backtrack(chain, prefix, None, temperature), came_from


def _best_prefixes(chain: Chain) -> tuple[Tensor, Tensor, Tensor]:
    """Best scores [N, T, K] of paths that end in a state, the states before, the best of all."""
    prefix = torch.empty_like(chain.emissions, dtype=torch.float64)
    came_from = torch.empty_like(prefix, dtype=torch.long)
    score = prefix.new_empty(len(prefix))
    sweep("viterbi.forward", chain, [*chain, prefix, came_from, score])
    return prefix, came_from, score


def relaxed_viterbi_adjoint(
    chain: Chain,
    came_from: Tensor,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed path [1, N, T, K]. O(N T K^2)."""
    chain = contiguous(chain)
    grad_prefix, columns = through_softmax(chain, draw, temperature, grad, needs)
    emissions = torch.empty_like(grad_prefix)
    sweep("viterbi.adjoint", chain, [chain.lengths, came_from, grad_prefix, emissions])
    of_temperature = grad_of_temperature(draw, temperature, grad, needs)
    if columns is None:
        return emissions, None, of_temperature
    transitions = gradient_of_best_moves(chain, came_from, emissions).add_(columns)
    return emissions, transitions, of_temperature


def gradient_of_best_moves(chain: Chain, came_from: Tensor, grad: Tensor) -> Tensor:
    """Each best prefix gives its gradient to the one move that it was made by."""
    num_chains, num_steps, num_states = grad.shape
    if chain.form is EdgeForm.PER_STEP:
        active = in_chain(chain.lengths, num_steps)[:, 1:, None]
        moved = torch.where(active, grad[:, 1:], 0.0).unsqueeze(2)
        before = torch.where(active, came_from[:, 1:], 0).unsqueeze(2)
        return torch.zeros_like(chain.transitions).scatter_(2, before, moved)
    per_chain, tiles = chain.form is EdgeForm.PER_CHAIN, Tiles.of(num_states)
    found = torch.empty_like(chain.transitions)
    launch(
        "viterbi.edge_gradient",
        [num_chains if per_chain else 1, tiles.column_blocks],
        [chain.lengths, came_from, grad, found, num_chains, num_steps],
        num_warps=tiles.warps(0, grad.dtype),
        PER_CHAIN=per_chain,
        R=tiles.rows,
        BJ=tiles.columns,
        **tiles.constants,
    )
    return found
