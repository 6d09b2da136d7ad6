"""The backends of semi-Markov chains as operators, for the compiler.

A further backend is one more `ChainOperators`, with a `Layout` of its own.
"""

from __future__ import annotations

import torch

from structdist.ops.operators import ChainOperators, Kind, Layout, Room
from structdist.ops.semi_markov import native, rescaled
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.state import Filtered

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


_layout = Layout(
    version=1,
    state_type=Filtered,
    state=_state,
    given=lambda chain: ((2, *chain.emissions.shape), torch.float64),
    known=lambda chain: ((2, *chain.emissions.shape), torch.long),
)

native_operators = ChainOperators(SEMI_MARKOV_CHAIN, native, _layout)
rescaled_operators = ChainOperators(SEMI_MARKOV_CHAIN, rescaled, _layout)
