"""Scores of given paths of a linear chain, all steps at once, and their adjoint."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, in_chain
from structdist.ops.edges import index_of_edges
from structdist.ops.finite import bounded_scores
from structdist.ops.problem import Grads, Needs


def path_scores(chain: Chain, paths: Tensor) -> Tensor:
    """[S, N] float64, of paths [S, N, T]: 0 if the chain is empty, -inf if none. O(S N T)."""
    nodes, edges, active = _indices(chain, paths)
    num_states = chain.emissions.shape[-1]
    possible = ((paths >= 0) & (paths < num_states)) | ~active
    total = _sum_of(chain.emissions, nodes, active) + _sum_of(
        chain.transitions, edges, active[:, 1:]
    )
    return torch.where(possible.all(-1), total, -torch.inf)


def path_scores_adjoint(chain: Chain, paths: Tensor, grad: Tensor, needs: Needs) -> Grads:
    """Each step of a path [S, N, T] gets the gradient [S, N] of its path. O(S N T)."""
    nodes, edges, active = _indices(chain, paths)
    parts = [(chain.emissions, nodes, active), (chain.transitions, edges, active[:, 1:])]
    return [
        spread(scores, index, torch.where(inside, grad.unsqueeze(-1), 0.0)) if need else None
        for (scores, index, inside), need in zip(parts, needs, strict=True)
    ]


def _indices(chain: Chain, paths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where the nodes [S, N, T] and edges [S, N, T-1] of paths stand; which steps [N, T] count."""
    num_chains, num_steps, num_states = chain.emissions.shape
    active = in_chain(chain.lengths, num_steps)
    paths = torch.where(active, paths, 0).clamp(0, num_states - 1)
    first = torch.arange(num_chains * num_steps, device=paths.device).view(num_chains, num_steps)
    return first * num_states + paths, index_of_edges(paths, chain.transitions), active


def _sum_of(scores: Tensor, index: Tensor, active: Tensor) -> Tensor:
    """The sum over time [S, N] of the entries at flat indices [S, N, T], where active."""
    picked = scores.reshape(-1).index_select(0, index.reshape(-1)).view(index.shape)
    return torch.where(active, bounded_scores(picked).double(), 0.0).sum(-1)


def spread(scores: Tensor, index: Tensor, grad: Tensor) -> Tensor:
    """Gradients [S, N, T], added up where they belong, in the shape of the scores."""
    total = grad.new_zeros(scores.numel(), dtype=scores.dtype)
    index, grad = index.reshape(-1), grad.to(scores.dtype).reshape(-1)
    if total.is_cuda:  # where this sorts first, and adds in the same order in every run
        return total.index_put_((index,), grad, accumulate=True).view(scores.shape)
    return total.index_add_(0, index, grad).view(scores.shape)
