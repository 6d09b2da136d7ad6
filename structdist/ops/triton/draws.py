"""Exact draws and Gumbel-FFBS: one launch each (kernels/backtrack.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain
from structdist.ops.problem import Draw, Grads, Needs, Temperature
from structdist.ops.rescaled.backtrack import through_softmax
from structdist.ops.rescaled.state import grad_of_temperature
from structdist.ops.triton.filtering import filter_adjoint
from structdist.ops.triton.launching import Tiles, launch
from structdist.ops.triton.state import Filtered, contiguous, sizes


def sample_paths(chain: Chain, state: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T K)."""
    chain, uniform = contiguous(chain), uniform.contiguous()
    path = torch.empty_like(uniform, dtype=torch.long)
    num_samples, num_chains, num_steps = uniform.shape
    tiles = Tiles.of(chain.emissions.shape[2])
    launch(
        "backtrack.exact",
        [tiles.programs(num_chains) * num_samples],
        [state.log_alpha, chain.transitions, chain.lengths, uniform, path, *sizes(chain)],
        steps=num_steps,
        num_warps=tiles.warps(0, chain.emissions.dtype),
        BN=tiles.chains,
        **tiles.constants,
    )
    return path


def gumbel_ffbs(chain: Chain, state: Filtered, gumbel: Tensor, temperature: Temperature) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K], and their relaxation. O(S N T K)."""
    return relaxed_backtrack(contiguous(chain), state.log_alpha, gumbel.contiguous(), temperature)


def relaxed_backtrack(
    chain: Chain, prefix: Tensor, noise: Tensor | None, temperature: Temperature
) -> Draw:
    """Choose by log weights of prefixes [N, T, K], with noise [S, N, T, K] or (S = 1) without."""
    emissions = chain.emissions
    num_chains, num_steps, num_states = emissions.shape
    num_samples = 1 if noise is None else len(noise)
    soft = emissions.new_empty(num_samples, *emissions.shape)
    draw = Draw(soft, soft.new_empty(soft.shape[:3], dtype=torch.long))
    if not isinstance(temperature, Tensor):
        temperature = emissions.new_full((), temperature, dtype=torch.float64)
    temperature = temperature.to(torch.float64).expand(num_samples, num_chains)
    tiles = Tiles.of(num_states)
    launch(
        "backtrack.relaxed",
        [tiles.programs(num_chains) * num_samples],
        [
            *(prefix, chain.transitions, chain.lengths, prefix if noise is None else noise),
            *(temperature, *draw, *sizes(chain), *temperature.stride()),
        ],
        steps=num_steps,
        NOISE=noise is not None,
        num_warps=tiles.warps(0, chain.emissions.dtype),
        BN=tiles.chains,
        **tiles.constants,
    )
    return draw


def gumbel_ffbs_adjoint(
    chain: Chain,
    state: Filtered,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed draws [S, N, T, K]. One sweep back for all samples."""
    grad_log_alpha, columns = through_softmax(chain, draw, temperature, grad, needs)
    emissions, transitions = filter_adjoint(chain, state, grad_log_alpha, needs)
    if transitions is not None and columns is not None:
        transitions = transitions + columns
    return emissions, transitions, grad_of_temperature(draw, temperature, grad, needs)
