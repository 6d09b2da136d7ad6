"""The recurrences in torch as operators: to the compiler each of them is one operation.

Otherwise it would unroll them, step by step, and could not look for sums that underflow.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops import rescaled
from structdist.ops.operators import ChainOperators, Layout, Room
from structdist.ops.rescaled.state import Filtered


def _rows(emissions: Tensor, dtype: torch.dtype) -> Room:
    num_chains, num_steps, num_states = emissions.shape
    return (num_steps, num_chains, num_states), dtype


def _state(emissions: Tensor) -> list[Room]:
    num_chains, num_steps, _ = emissions.shape
    rows, log_rows = _rows(emissions, emissions.dtype), _rows(emissions, torch.float64)
    log_norm, log_z = (num_steps, num_chains, 1), (num_chains,)
    return [rows, rows, (log_norm, torch.float64), (log_z, torch.float64), log_rows]


as_operators = ChainOperators(
    rescaled,
    Layout(
        version=1,
        state_type=Filtered,
        state=_state,
        given=lambda emissions: _rows(emissions, torch.float64),
        known=lambda emissions: _rows(emissions, torch.long),
        optional=True,
    ),
)
