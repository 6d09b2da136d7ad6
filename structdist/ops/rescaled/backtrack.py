"""Drawing a path from its last state to its first: exact draws, and Gumbel-FFBS."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, full_precision, in_chain, transitions_without_padding
from structdist.ops.edges import EdgeForm, sum_of_outer_products
from structdist.ops.problem import Draw, Grads, Needs, Temperature
from structdist.ops.rescaled.edges import Edges
from structdist.ops.rescaled.filtering import filter_adjoint, log_weights
from structdist.ops.rescaled.state import (
    Filtered,
    active_steps,
    finite_or_zero,
    grad_of_temperature,
    per_sample,
)


def sample_paths(chain: Chain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T K)."""
    edges = Edges(transitions_without_padding(chain))
    log_alpha, moves = log_weights(chain, filtered, edges), _MovesInto(edges, chain)
    path = _room_for_paths(uniform)
    noise = uniform.permute(2, 0, 1).unsqueeze(-1)
    for t in reversed(range(len(path))):
        logits = log_alpha[t] if t == len(path) - 1 else log_alpha[t] + moves.at(t, path[t + 1])
        cumulative = torch.softmax(logits, -1).cumsum(-1)
        below = cumulative <= noise[t] * cumulative[..., -1:]  # never all: the noise is below 1
        torch.sum(below, -1, out=path[t])
        moves.leave(t, path[t])
    return path.permute(1, 2, 0) * in_chain(chain.lengths, len(path))


def _room_for_paths(noise: Tensor) -> Tensor:
    """[T, S, N], for noise [S, N, T, ...]."""
    num_samples, num_chains, num_steps = noise.shape[:3]
    return noise.new_empty((num_steps, num_samples, num_chains), dtype=torch.long)


class _MovesInto:
    """Scores of moving into the states that were drawn, 0 where the chain is over.

    A chain that is over is in a state of its own, into which all moves have score 0. Transitions of
    each step need none: theirs are 0 in the padding.
    """

    def __init__(self, edges: Edges, chain: Chain) -> None:
        self.form = edges.form
        self.items = torch.arange(len(chain.lengths), device=chain.lengths.device)
        self.table = edges.scores.transpose(-1, -2)  # [..., into, from]
        if self.form is not EdgeForm.PER_STEP:
            over = torch.zeros_like(self.table[..., :1, :])
            self.table = torch.cat([self.table, over], -2)
        self.over = ~active_steps(chain.lengths, chain.emissions.shape[1]).squeeze(-1)  # [T, N]

    def at(self, t: int, state: Tensor) -> Tensor:
        """[S, N, K]: of moving from step t into states [S, N]."""
        if self.form is EdgeForm.SHARED:
            return self.table[state]
        table = self.table if self.form is EdgeForm.PER_CHAIN else self.table[:, t]
        return table[self.items, state]

    def leave(self, t: int, state: Tensor) -> None:
        """Write the state of its own over those of chains that are over at step t."""
        if self.form is not EdgeForm.PER_STEP:
            state.masked_fill_(self.over[t], self.table.shape[-1])


def gumbel_ffbs(chain: Chain, filtered: Filtered, gumbel: Tensor, temperature: Temperature) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K], and their relaxation. O(S N T K)."""
    edges = Edges(transitions_without_padding(chain))
    path, moves = _room_for_paths(gumbel), _MovesInto(edges, chain)
    logits = torch.empty((*path.shape, gumbel.shape[-1]), dtype=torch.float64, device=path.device)
    log_alpha = log_weights(chain, filtered, edges).unsqueeze(1)
    torch.add(log_alpha, gumbel.permute(2, 0, 1, 3), out=logits)
    for t in reversed(range(len(path))):
        if t < len(path) - 1:
            logits[t].add_(moves.at(t, path[t + 1]))
        torch.argmax(logits[t], -1, out=path[t])
        moves.leave(t, path[t])
    path = path.permute(1, 2, 0) * in_chain(chain.lengths, len(path))
    return Draw(relax(logits, temperature, gumbel.dtype), path)


def relax(logits: Tensor, temperature: Temperature, dtype: torch.dtype) -> Tensor:
    """[S, N, T, K]: the softmax of logits [T, S, N, K] over the temperature, 0 where all are -inf.

    It takes the place of the logits in memory.
    """
    if isinstance(temperature, Tensor):
        temperature = temperature.unsqueeze(-1)  # to divide [S, N, K]
    logits.sub_(finite_or_zero(logits.amax(-1, keepdim=True)))
    soft = logits.div_(temperature).exp_()
    soft.div_(soft.sum(-1, keepdim=True).clamp_(min=1))  # it is at least 1, or 0
    return soft.permute(1, 2, 0, 3).to(dtype, memory_format=torch.contiguous_format)


def gumbel_ffbs_adjoint(
    chain: Chain,
    filtered: Filtered,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed draws [S, N, T, K]. One sweep back for all samples."""
    grad_log_alpha, columns = through_softmax(chain, draw, temperature, grad, needs)
    emissions, transitions = filter_adjoint(chain, filtered, grad_log_alpha, needs)
    if transitions is not None and columns is not None:
        transitions = transitions + columns
    return emissions, transitions, grad_of_temperature(draw, temperature, grad, needs)


def through_softmax(
    chain: Chain, draw: Draw, temperature: Temperature, grad: Tensor, needs: Needs
) -> tuple[Tensor, Tensor | None]:
    """From the gradient of relaxed draws to those of prefixes and of the transitions taken."""
    sharpness = 1 / per_sample(temperature)
    pulled = draw.soft * (grad - (grad * draw.soft).sum(-1, keepdim=True)) * sharpness
    pulled = pulled.to(draw.soft.dtype)
    if not needs[1]:
        return pulled.sum(0), None
    moved_from = pulled[:, :, :-1]  # [S, N, T-1, K]
    moved_into = torch.zeros_like(moved_from)
    follows = in_chain(chain.lengths - 1, moved_from.shape[2]).to(moved_from.dtype)
    index = draw.path[:, :, 1:].unsqueeze(-1)
    moved_into.scatter_(-1, index, follows.unsqueeze(-1).expand(index.shape))
    with full_precision(grad.device):
        return pulled.sum(0), sum_of_outer_products(moved_from, moved_into, chain.form)
