"""Drawing a path from its last state to its first: exact draws, and Gumbel-FFBS."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import (
    Chain,
    Draw,
    Filtered,
    FilterGrads,
    full_precision,
    in_chain,
    without_padding,
)
from structdist.ops.reference import relaxed_backtrack, sampling_backtrack
from structdist.ops.rescaled.filtering import filter_adjoint


def sample_paths(chain: Chain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T K)."""
    _, transitions, lengths = without_padding(chain)
    return sampling_backtrack(filtered.log_alpha, transitions, lengths, uniform)


def gumbel_ffbs(chain: Chain, filtered: Filtered, gumbel: Tensor, temperature: float) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K], and their relaxation. O(S N T K)."""
    _, transitions, lengths = without_padding(chain)
    draw = relaxed_backtrack(filtered.log_alpha, transitions, lengths, gumbel, temperature)
    return Draw(draw.soft.to(gumbel.dtype), draw.path)


def gumbel_ffbs_adjoint(
    chain: Chain, filtered: Filtered, draw: Draw, grad: Tensor, temperature: float
) -> FilterGrads:
    """Gradients from that of the relaxed draws [S, N, T, K]. One sweep back for all samples."""
    grad_log_alpha, columns = through_softmax(chain, draw, grad, temperature)
    grads = filter_adjoint(chain, filtered, grad_log_alpha, None)
    assert grads.transitions is not None
    return FilterGrads(grads.emissions, grads.transitions + columns)


def through_softmax(
    chain: Chain, draw: Draw, grad: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """From the gradient of relaxed draws to those of prefixes and of the transitions taken."""
    pulled = draw.soft * (grad - (grad * draw.soft).sum(-1, keepdim=True)) / temperature
    moved_from = pulled[:, :, :-1]  # [S, N, T-1, K]
    moved_into = torch.zeros_like(moved_from)
    follows = in_chain(chain.lengths - 1, moved_from.shape[2]).to(moved_from.dtype)
    index = draw.path[:, :, 1:].unsqueeze(-1)
    moved_into.scatter_(-1, index, follows.unsqueeze(-1).expand(index.shape))
    with full_precision(grad.device):
        columns = _sum_of_products(moved_from, moved_into, chain.transitions.dim())
    return pulled.sum(0), columns


def _sum_of_products(left: Tensor, right: Tensor, edge_dims: int) -> Tensor:
    """Outer products of [S, N, T-1, K] rows, summed over all that share an edge."""
    if edge_dims == 2:
        return left.flatten(0, 2).T @ right.flatten(0, 2)
    if edge_dims == 3:
        return torch.einsum("snti,sntj->nij", left, right)
    return torch.einsum("snti,sntj->ntij", left, right)
