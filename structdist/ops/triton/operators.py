"""The kernels in Triton as operators, for the compiler."""

from __future__ import annotations

import torch

from structdist.ops import triton
from structdist.ops.chain import Chain
from structdist.ops.operators import ChainOperators, Layout, Room
from structdist.ops.rescaled.operators import LINEAR_CHAIN
from structdist.ops.triton.state import Filtered, is_resident


def _state(chain: Chain) -> list[Room]:
    (shape, dtype), by_chain = (chain.emissions.shape, chain.emissions.dtype), chain.lengths.shape
    log_alpha, weights, incoming = (shape, torch.float64), (shape, dtype), (shape, dtype)
    log_z, rounded_log_z = (by_chain, torch.float64), (by_chain, dtype)
    careful = by_chain, torch.int32
    transposed = (chain.transitions.shape if is_resident(chain, 1) else (0,)), dtype
    return [log_alpha, weights, incoming, log_z, rounded_log_z, careful, transposed]


as_operators = ChainOperators(
    LINEAR_CHAIN,
    triton,
    Layout(
        version=1,
        state_type=Filtered,
        state=_state,
        given=lambda chain: (chain.emissions.shape, torch.float64),
        known=lambda chain: (chain.emissions.shape, torch.long),
    ),
)
