"""The backends of semi-Markov chains as operators, for the compiler.

A further backend is one more `ChainOperators`, with a `Layout` of its own.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from structdist.ops.operators import ChainOperators, Kind, Layout, Room
from structdist.ops.semi_markov import native, rescaled, triton
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.state import Filtered
from structdist.ops.semi_markov.triton.state import Filtered as FilteredByTriton
from structdist.ops.semi_markov.triton.state import moves_of
from structdist.ops.triton.state import is_resident

SEMI_MARKOV_CHAIN = Kind(
    "segments",
    SemiMarkovChain,
    ("token_marginals", "edge_marginals", "marginals", "first_step_marginals"),
    plain=rescaled,
)


def _state(chain: SemiMarkovChain) -> list[Room]:
    by_label, dtype = chain.emissions.shape, chain.emissions.dtype
    log_weights, weights = (by_label, torch.float64), (by_label, dtype)
    norms, log_z = (by_label[:2], torch.float64), (by_label[:1], torch.float64)
    return [log_weights, log_weights, norms, weights, weights, log_z]


def _state_of_triton(chain: SemiMarkovChain) -> list[Room]:
    by_label, by_chain, dtype = chain.emissions.shape, chain.lengths.shape, chain.emissions.dtype
    log_weights, weights = (by_label, torch.float64), (by_label, dtype)
    resident = is_resident(moves_of(chain), 1)
    incoming = (by_label if resident else (0,)), dtype
    transposed = (chain.transitions.shape if resident else (0,)), dtype
    log_z = [(by_chain, torch.float64), (by_chain, dtype)]
    return [*[log_weights] * 3, weights, incoming, *log_z, transposed]


_layout = Layout(
    version=1,
    state_type=Filtered,
    state=_state,
    given=lambda chain: ((2, *chain.emissions.shape), torch.float64),
    known=lambda chain: ((2, *chain.emissions.shape), torch.long),
)
_layout_of_triton = replace(_layout, state_type=FilteredByTriton, state=_state_of_triton)

native_operators = ChainOperators(SEMI_MARKOV_CHAIN, native, _layout)
triton_operators = ChainOperators(SEMI_MARKOV_CHAIN, triton, _layout_of_triton)
rescaled_operators = ChainOperators(SEMI_MARKOV_CHAIN, rescaled, _layout)
