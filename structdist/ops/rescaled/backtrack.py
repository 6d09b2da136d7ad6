"""Drawing a path from its last state to its first: exact draws, and Gumbel-FFBS."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, full_precision, in_chain, without_padding
from structdist.ops.edges import sum_of_outer_products
from structdist.ops.problem import Draw, Grads, Needs, Temperature
from structdist.ops.reference import relaxed_backtrack, sampling_backtrack
from structdist.ops.rescaled.filtering import filter_adjoint
from structdist.ops.rescaled.state import Filtered, grad_of_temperature, per_sample


def sample_paths(chain: Chain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T K)."""
    _, transitions, lengths = without_padding(chain)
    return sampling_backtrack(filtered.log_alpha, transitions, lengths, uniform)


def gumbel_ffbs(chain: Chain, filtered: Filtered, gumbel: Tensor, temperature: Temperature) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K], and their relaxation. O(S N T K)."""
    _, transitions, lengths = without_padding(chain)
    draw = relaxed_backtrack(filtered.log_alpha, transitions, lengths, gumbel, temperature)
    return Draw(draw.soft.to(gumbel.dtype), draw.path)


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
