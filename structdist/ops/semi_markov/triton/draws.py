"""Exact draws and Gumbel-FFBS: one launch each (kernels/segment_backtrack.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from structdist.ops.edges import EdgeForm
from structdist.ops.problem import Draw, Grads, Needs, Temperature
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.draws import grad_of_temperature, through_softmax
from structdist.ops.semi_markov.triton.filtering import Single, filter_adjoint
from structdist.ops.semi_markov.triton.state import Filtered, contiguous, moves_of, table_strides
from structdist.ops.triton.launching import Tiles, launch
from structdist.ops.triton.state import sizes


class Prefixes(NamedTuple):
    """What is chosen by. Each step of `ends` may have lost a constant that the others have too."""

    ends: Tensor  # [N, T, K] float64
    begins: Tensor  # [N, T, K] float64
    steps: Tensor  # [N, T, K], of any dtype


def sample_paths(chain: SemiMarkovChain, state: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T + segments (K + L))."""
    chain, uniform = contiguous(chain), uniform.contiguous()
    path = torch.empty_like(uniform, dtype=torch.long)
    prefixes = Prefixes(state.ends, state.begins, state.steps)
    _backtrack("exact", chain, prefixes, len(path), [uniform, path])
    return path


def gumbel_ffbs(
    chain: SemiMarkovChain, state: Filtered, gumbel: Tensor, temperature: Temperature
) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K + L], relaxed."""
    prefixes = Prefixes(state.ends, state.begins, state.steps)
    return relaxed_backtrack(contiguous(chain), prefixes, gumbel.contiguous(), temperature)


def relaxed_backtrack(
    chain: SemiMarkovChain, prefixes: Prefixes, noise: Tensor | None, temperature: Temperature
) -> Draw:
    """Choose with noise [S, N, T, K + L] or (S = 1) without, and relax the choices."""
    num_chains, num_steps, num_labels = chain.emissions.shape
    num_samples = 1 if noise is None else len(noise)
    draw = Draw(
        chain.emissions.new_empty(num_samples, num_chains, num_steps, num_labels + chain.longest),
        chain.lengths.new_empty(num_samples, num_chains, num_steps, dtype=torch.long),
    )
    _choose(chain, prefixes, noise, temperature, draw)
    return draw


def best_backtrack(chain: SemiMarkovChain, prefixes: Prefixes) -> Tensor:
    """[N, T]: what is chosen without noise."""
    path = torch.empty_like(chain.emissions[..., 0], dtype=torch.long)
    _choose(chain, prefixes, None, 1.0, Draw(chain.emissions, path[None]), SOFT=False)
    return path


def _choose(
    chain: SemiMarkovChain,
    prefixes: Prefixes,
    noise: Tensor | None,
    temperature: Temperature,
    draw: Draw,
    **constants: Any,
) -> None:
    if not isinstance(temperature, Tensor):
        temperature = prefixes.ends.new_full((), temperature)
    temperature = temperature.to(torch.float64).expand(draw.path.shape[:2])
    given = prefixes.ends if noise is None else noise
    arguments = [given, temperature, *draw, *temperature.stride()]
    constants = {"NOISE": noise is not None, "SOFT": True} | constants
    _backtrack("relaxed", chain, prefixes, len(draw.path), arguments, **constants)


def _backtrack(
    kernel: str,
    chain: SemiMarkovChain,
    prefixes: Prefixes,
    num_samples: int,
    arguments: list[Any],
    **constants: Any,
) -> None:
    emissions, transitions, segments, lengths = chain
    tiles, longest = Tiles.of(emissions.shape[2]), Tiles.of(chain.longest)
    launch(
        f"segment_backtrack.{kernel}",
        [tiles.programs(len(emissions)) * num_samples],
        [
            *(*prefixes, transitions, segments, lengths, *arguments),
            *(chain.longest, *table_strides(segments), *sizes(moves_of(chain))),
        ],
        steps=emissions.shape[1],
        num_warps=max(x.warps(0, emissions.dtype) for x in (tiles, longest)),
        BN=tiles.chains,
        LP=longest.padded,
        **tiles.constants,
        **constants,
    )


def gumbel_ffbs_adjoint(
    chain: SemiMarkovChain,
    state: Filtered,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed draws [S, N, T, K + L]. One sweep for all samples."""
    pulled = through_softmax(chain, draw, temperature, grad)
    single = Single(pulled.sizes, draw.path)
    emissions, transitions, segments = filter_adjoint(
        chain, state, pulled.ends, needs, single
    ).scores
    if transitions is not None:
        transitions = transitions + pulled.transitions(EdgeForm.of(chain.transitions))
    of_temperature = grad_of_temperature(draw, temperature, grad, needs, chain.longest)
    return emissions, transitions, segments, of_temperature
