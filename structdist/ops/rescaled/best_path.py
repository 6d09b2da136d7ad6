"""Viterbi, relaxed too, and its adjoint, which follows the best state before each."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import Chain, in_chain, transitions_without_padding
from structdist.ops.edges import EdgeForm, edges_at, every_edge
from structdist.ops.finite import bounded_scores
from structdist.ops.problem import Best, Draw, Grads, Needs, Temperature
from structdist.ops.rescaled.backtrack import relax, through_softmax
from structdist.ops.rescaled.state import active_steps, grad_of_temperature, last_step


class _BestPaths(NamedTuple):
    prefix: Tensor  # [T, N, K] float64: the best score of paths that end in a state; padding -inf
    came_from: Tensor  # [T, N, K]: the state before it; beyond the last step, the best last state
    path: Tensor  # [T, N]; in the padding any state


def _best_paths(chain: Chain, transitions: Tensor) -> _BestPaths:
    """With transitions that have no padding. O(N T K^2)."""
    emissions, lengths = bounded_scores(chain.emissions).transpose(0, 1), chain.lengths
    prefix = torch.empty(emissions.shape, dtype=torch.float64, device=emissions.device)
    over = ~active_steps(lengths, len(prefix))
    prefix.copy_(emissions).masked_fill_(over, -torch.inf)
    came_from = torch.zeros_like(prefix, dtype=torch.long)
    scores = torch.empty_like(prefix[0])
    for t in range(1, len(prefix)):
        moves = prefix[t - 1].unsqueeze(-1) + edges_at(transitions, t - 1)
        torch.max(moves, 1, out=(scores, came_from[t]))
        prefix[t].add_(scores)
    last = last_step(prefix, lengths).argmax(-1)
    came_from = torch.where(over, last.unsqueeze(-1), came_from)
    path = torch.empty_like(came_from[..., 0])
    path[-1] = last
    for t in reversed(range(len(path) - 1)):
        torch.gather(came_from[t + 1], 1, path[t + 1].unsqueeze(-1), out=path[t].unsqueeze(-1))
    return _BestPaths(prefix, came_from, path)


def viterbi(chain: Chain) -> Best:
    """The best path [N, T] and its score [N]. O(N T K^2)."""
    best = _best_paths(chain, transitions_without_padding(chain))
    score = last_step(best.prefix, chain.lengths).amax(-1)
    active = in_chain(chain.lengths, len(best.path))
    return Best(best.path.T * active, torch.where(chain.lengths > 0, score, 0.0))


def relaxed_viterbi(chain: Chain, temperature: Temperature) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and where each best score comes from. O(N T K^2)."""
    transitions = transitions_without_padding(chain)
    prefix, came_from, path = _best_paths(chain, transitions)
    active = in_chain(chain.lengths, len(path))
    path = path.T * active  # [N, T]
    moves = _moves_into(transitions, path[:, 1:])
    prefix[:-1] += torch.where(active[:, 1:, None], moves, 0.0).transpose(0, 1)
    soft = relax(prefix.unsqueeze(1), temperature, chain.emissions.dtype)
    return Draw(soft, path.unsqueeze(0)), came_from


def _moves_into(transitions: Tensor, states: Tensor) -> Tensor:
    """[N, T-1, K]: scores of moving into the states [N, T-1] of one path."""
    into = every_edge(transitions).transpose(-1, -2)
    into = into.expand(*states.shape, *into.shape[-2:])
    index = states[..., None, None].expand(*states.shape, 1, into.shape[-1])
    return into.gather(-2, index).squeeze(-2)


def relaxed_viterbi_adjoint(
    chain: Chain,
    came_from: Tensor,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed path [1, N, T, K]. O(N T K)."""
    grad_prefix, columns = through_softmax(chain, draw, temperature, grad, needs)
    grads = grad_prefix.transpose(0, 1).contiguous()  # [T, N, K], 0 in the padding
    for t in reversed(range(1, len(grads))):
        grads[t - 1].scatter_add_(1, came_from[t], grads[t])
    transitions = None
    if columns is not None:
        transitions = columns + _sum_of_moves(chain, came_from[1:], grads[1:])
    of_temperature = grad_of_temperature(draw, temperature, grad, needs)
    return grads.transpose(0, 1).contiguous(), transitions, of_temperature


def _sum_of_moves(chain: Chain, came_from: Tensor, grads: Tensor) -> Tensor:
    """What each best move gets, [T-1, N, K] by the state it goes into, in the form of the edges."""
    total = chain.transitions.new_zeros(chain.transitions.shape)  # contiguous, whatever those are
    num_states = total.shape[-1]
    index = came_from * num_states + torch.arange(num_states, device=total.device)
    if chain.form is EdgeForm.SHARED:
        total.view(-1).index_add_(0, index.flatten(), grads.flatten())
    elif chain.form is EdgeForm.PER_CHAIN:
        by_chain = index.transpose(0, 1).flatten(1), grads.transpose(0, 1).flatten(1)
        total.flatten(1).scatter_add_(1, *by_chain)
    else:
        total.flatten(2).scatter_(2, index.transpose(0, 1), grads.transpose(0, 1))
    return total
