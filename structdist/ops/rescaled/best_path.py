"""Viterbi, relaxed too, and its adjoint, which follows the best state before each."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, in_chain, without_padding
from structdist.ops.edges import EdgeForm, edges_at
from structdist.ops.problem import Best, Draw, Grads, Needs, Temperature
from structdist.ops.reference import relaxed_backtrack
from structdist.ops.rescaled.backtrack import through_softmax
from structdist.ops.rescaled.edges import EdgeGrads
from structdist.ops.rescaled.state import grad_of_temperature


def viterbi(chain: Chain) -> Best:
    """The best path [N, T] and its score [N]. O(N T K^2)."""
    prefix, _ = _best_prefixes(chain)
    score = torch.where(chain.lengths > 0, prefix[:, -1].amax(-1), 0.0)
    return Best(_backtrack(chain, prefix, temperature=1.0).path[0], score)


def relaxed_viterbi(chain: Chain, temperature: Temperature) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and where each best score comes from. O(N T K^2)."""
    prefix, came_from = _best_prefixes(chain)
    draw = _backtrack(chain, prefix, temperature)
    return Draw(draw.soft.to(chain.emissions.dtype), draw.path), came_from


def _best_prefixes(chain: Chain) -> tuple[Tensor, Tensor]:
    """[N, T, K]: the best score (float64) of paths that end in a state, and the state before it."""
    emissions, transitions, lengths = without_padding(chain)
    active = in_chain(lengths, emissions.shape[1])
    prefix = [emissions[:, 0].double()]
    came_from = [torch.zeros_like(prefix[0], dtype=torch.long)]
    for t in range(1, emissions.shape[1]):
        best, state = (prefix[-1].unsqueeze(-1) + edges_at(transitions, t - 1)).max(1)
        prefix.append(torch.where(active[:, t, None], best + emissions[:, t], prefix[-1]))
        came_from.append(state)
    return torch.stack(prefix, 1), torch.stack(came_from, 1)


def _backtrack(chain: Chain, prefix: Tensor, temperature: Temperature) -> Draw:
    _, transitions, lengths = without_padding(chain)
    no_noise = torch.zeros_like(prefix)[None]
    return relaxed_backtrack(prefix, transitions, lengths, no_noise, temperature)


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
    num_steps, num_states = grad_prefix.shape[1:]
    active = in_chain(chain.lengths, num_steps).unsqueeze(-1)
    shared = chain.form is EdgeForm.SHARED
    grads, grad_edges = list(grad_prefix.unbind(1)), EdgeGrads(chain.transitions)
    for t in reversed(range(1, num_steps)):
        here = torch.where(active[:, t], grads[t], 0.0)
        grads[t - 1] = grads[t - 1].scatter_add(1, came_from[:, t], here)
        if needs[1]:
            moves = here.new_zeros(len(here), num_states, num_states)
            moves.scatter_(1, came_from[:, t].unsqueeze(1), here.unsqueeze(1))
            grad_edges.add(t - 1, moves.sum(0, keepdim=True) if shared else moves)
    of_temperature = grad_of_temperature(draw, temperature, grad, needs)
    transitions = None if columns is None else grad_edges.total + columns
    return torch.stack(grads, 1), transitions, of_temperature
