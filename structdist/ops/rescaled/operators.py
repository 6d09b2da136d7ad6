"""The recurrences in torch as operators: to the compiler each of them is one operation.

Otherwise it would unroll them, step by step, and could not look for sums that underflow.
"""

from __future__ import annotations

import torch

from structdist.ops import rescaled
from structdist.ops.chain import Chain
from structdist.ops.operators import ChainOperators, Kind, Layout, Room
from structdist.ops.rescaled.state import Filtered

LINEAR_CHAIN = Kind("chain", Chain, ("marginals", "edge_marginals"), plain=rescaled)


def _rows(chain: Chain, dtype: torch.dtype) -> Room:
    num_chains, num_steps, num_states = chain.emissions.shape
    return (num_steps, num_chains, num_states), dtype


def _state(chain: Chain) -> list[Room]:
    num_chains, num_steps, _ = chain.emissions.shape
    weights = incoming = _rows(chain, chain.emissions.dtype)
    log_norm = (num_steps, num_chains, 1), torch.float64
    log_z = (num_chains,), torch.float64
    return [weights, incoming, log_norm, log_z, _rows(chain, torch.float64)]


as_operators = ChainOperators(
    LINEAR_CHAIN,
    rescaled,
    Layout(
        version=1,
        state_type=Filtered,
        state=_state,
        given=lambda chain: _rows(chain, torch.float64),
        known=lambda chain: _rows(chain, torch.long),
        restores_none=True,
    ),
)
