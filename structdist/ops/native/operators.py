"""The compiled kernels and their noise as operators, for the compiler."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops import native
from structdist.ops.chain import Chain
from structdist.ops.native import library
from structdist.ops.operators import ChainOperators, Layout, Room
from structdist.ops.rescaled.operators import LINEAR_CHAIN


def _given(chain: Chain) -> Room:
    return native._shape_of_means(chain.emissions, in_log_space=True), torch.uint8


def _state(chain: Chain) -> list[Room]:
    memory = (native._bytes_of_state(chain.emissions),), torch.uint8
    return [memory, (chain.emissions.shape, torch.float64)]


as_operators = ChainOperators(
    LINEAR_CHAIN,
    native,
    Layout(
        version=library.VERSION,
        state_type=native.Filtered,
        state=_state,
        given=_given,
        known=lambda chain: (chain.emissions.shape, torch.int32),
    ),
)


# Noise ---------------------------------------------------------------------------------------

_library = torch.library.Library("structdist", "FRAGMENT")
_library.define("gumbel_noise(Tensor seed, SymInt[] shape, ScalarType dtype) -> Tensor")
_library.impl(
    "gumbel_noise",
    lambda seed, shape, dtype: library.gumbel_noise_of(seed.item(), shape, dtype),
    "CompositeExplicitAutograd",
)


@torch.library.register_fake("structdist::gumbel_noise", lib=_library)
def _empty_noise(seed: Tensor, shape: list[int], dtype: torch.dtype) -> Tensor:
    return seed.new_empty(shape, dtype=dtype)


def gumbel_noise(seed: Tensor, shape: list[int], dtype: torch.dtype) -> Tensor:
    """Standard Gumbel noise that a seed stands for."""
    noise: Tensor = torch.ops.structdist.gumbel_noise(seed, shape, dtype)
    return noise
