"""Relaxed Viterbi, and its adjoint, which follows the best state before each."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, FilterGrads, edges_at, in_chain
from structdist.ops.reference import Draw, relaxed_backtrack, without_padding
from structdist.ops.rescaled.backtrack import through_softmax


def relaxed_viterbi(chain: Chain, temperature: float) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and what the adjoint needs. O(N T K^2)."""
    emissions, transitions, lengths = without_padding(chain)
    active = in_chain(lengths, emissions.shape[1])
    prefix = [emissions[:, 0].double()]
    came_from = [torch.zeros_like(prefix[0], dtype=torch.long)]
    for t in range(1, emissions.shape[1]):
        best, state = (prefix[-1].unsqueeze(-1) + edges_at(transitions, t - 1)).max(1)
        prefix.append(torch.where(active[:, t, None], best + emissions[:, t], prefix[-1]))
        came_from.append(state)
    best_prefix = torch.stack(prefix, 1)
    no_noise = torch.zeros_like(best_prefix)[None]
    draw = relaxed_backtrack(best_prefix, transitions, lengths, no_noise, temperature)
    return Draw(draw.soft.to(emissions.dtype), draw.path), torch.stack(came_from, 1)


def relaxed_viterbi_adjoint(
    chain: Chain, came_from: Tensor, draw: Draw, grad: Tensor, temperature: float
) -> FilterGrads:
    """Gradients from that of the relaxed path [1, N, T, K]. O(N T K)."""
    grad_prefix, grad_edges = through_softmax(chain, draw, grad, temperature)
    num_steps, num_states = grad_prefix.shape[1:]
    active = in_chain(chain.lengths, num_steps).unsqueeze(-1)
    grads = list(grad_prefix.unbind(1))
    for t in reversed(range(1, num_steps)):
        here = torch.where(active[:, t], grads[t], 0.0)
        grads[t - 1] = grads[t - 1].scatter_add(1, came_from[:, t], here)
        moves = torch.zeros(len(here), num_states, num_states).to(here)
        moves.scatter_(1, came_from[:, t].unsqueeze(1), here.unsqueeze(1))  # [N, K, K]
        _add_moves(grad_edges, t - 1, moves)
    return FilterGrads(torch.stack(grads, 1), grad_edges)


def _add_moves(grad_edges: Tensor, t: int, moves: Tensor) -> None:
    """Add gradients of moves [N, K, K] after step t, in the form of the transitions."""
    if grad_edges.dim() == 4:
        grad_edges[:, t] += moves
    else:
        grad_edges += moves if grad_edges.dim() == 3 else moves.sum(0)
