"""Drawing segments from last to first: exact draws, and Gumbel-FFBS."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from structdist.ops.native.library import Temperatures, pointers
from structdist.ops.problem import Draw, Grads, Needs, Temperature
from structdist.ops.semi_markov.native.arguments import (
    CPU,
    DrawArguments,
    SoftGradArguments,
    call,
    ready,
    state_of,
)
from structdist.ops.semi_markov.native.filtering import filter_adjoint
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.draws import grad_of_temperature
from structdist.ops.semi_markov.rescaled.state import Filtered


def sample_paths(chain: SemiMarkovChain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T + segments (K + L))."""
    chain, uniform = ready(chain), uniform.contiguous()
    path = torch.empty(uniform.shape, dtype=torch.long, device=CPU)
    arguments = DrawArguments(len(uniform), uniform.data_ptr(), None, 0, 0, None, path.data_ptr())
    call("sample_segments", chain, state_of(filtered), arguments)
    return path


def gumbel_ffbs(
    chain: SemiMarkovChain, filtered: Filtered, gumbel: Tensor, temperature: Temperature
) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K + L], relaxed."""
    chain = ready(chain)
    gumbel = gumbel.to(chain.emissions.dtype).contiguous()
    return relaxed_backtrack(chain, filtered, gumbel.shape, gumbel, temperature)


def relaxed_backtrack(
    chain: SemiMarkovChain,
    filtered: Filtered,
    shape: Sequence[int],
    noise: Tensor | None,
    temperature: Temperature,
) -> Draw:
    """Choose by prefixes and by noise, if any; `shape` is that of the draws [S, N, T, K + L]."""
    soft = chain.emissions.new_empty(shape)
    draw = Draw(soft, torch.empty(soft.shape[:3], dtype=torch.long, device=CPU))
    temperatures = Temperatures(temperature, draw.path.shape[:2])
    call("relaxed_segments", chain, state_of(filtered), _draws(draw, temperatures, noise))
    return draw


def _draws(draw: Draw, temperatures: Temperatures, noise: Tensor | None = None) -> DrawArguments:
    place, outputs = temperatures.place, pointers(*draw)
    return DrawArguments(len(draw.soft), *pointers(noise), *place, *outputs)


def gumbel_ffbs_adjoint(
    chain: SemiMarkovChain,
    filtered: Filtered,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed draws [S, N, T, K + L]. One sweep for all samples."""
    chain = ready(chain)
    grad_ends, grad_lengths, moves = through_softmax(chain, draw, temperature, grad, needs)
    single = grad_lengths, labels_of(draw, chain)
    emissions, transitions, segments, _ = filter_adjoint(
        chain, filtered, grad_ends, None, needs, single
    )
    if transitions is not None and moves is not None:
        transitions = transitions + moves
    of_temperature = grad_of_temperature(draw, temperature, grad, needs, chain.longest)
    return emissions, transitions, segments, of_temperature


def labels_of(draw: Draw, chain: SemiMarkovChain) -> Tensor:
    """[S, N, T]: the label of each step of the hard choices."""
    return draw.path % chain.emissions.shape[-1]


def through_softmax(
    chain: SemiMarkovChain, draw: Draw, temperature: Temperature, grad: Tensor, needs: Needs
) -> tuple[Tensor, Tensor, Tensor | None]:
    """From the gradient of relaxed draws to those of ends, lengths [S, N, T, L] and moves."""
    grad = grad.contiguous()
    temperatures = Temperatures(temperature, draw.path.shape[:2])
    grad_ends = torch.empty_like(chain.emissions)
    grad_lengths = grad.new_empty(*draw.path.shape, chain.longest)
    moves = torch.zeros_like(chain.transitions) if needs[1] else None
    pulled = SoftGradArguments(*pointers(grad, grad_ends, grad_lengths, moves))
    call("relaxed_segments_adjoint", chain, _draws(draw, temperatures), pulled)
    return grad_ends, grad_lengths, moves
