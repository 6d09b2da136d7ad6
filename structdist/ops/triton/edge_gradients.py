"""Gradients of edges from what a sweep back leaves: matrix products, then kernels/edges.py."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import Chain, full_precision
from structdist.ops.edges import EdgeForm
from structdist.ops.triton.launching import Tiles, launch
from structdist.ops.triton.state import Filtered, is_resident


class Means(NamedTuple):
    """What a mean was found from, and what its sweep back leaves; see csrc/expect.cpp."""

    mean: Tensor  # [N, T, K] float64: F
    node_values: Tensor | None  # [N, T, K] float64
    edge_values: Tensor | None  # in the form of the transitions
    mass: Tensor  # [N, T, K]: M, the gradient of F
    weighed: Tensor  # [N, T, K]: P (F - pivot), plus the entropy of P
    over_incoming: Tensor  # [N, T, K]: M over the sums that lead to a state

    @property
    def kind(self) -> int:
        """As kernels count: the entropy, values on nodes, values on edges too."""
        if self.node_values is None:
            return 1
        return 2 if self.edge_values is None else 3


def edge_gradients(chain: Chain, state: Filtered, grad: Tensor, scaled: Tensor) -> Tensor:
    """From the gradient of log_alpha [N, T, K], and the same over the sums that lead there."""
    pulls = None
    if is_resident(chain, matrices=1):
        pulls = _outer_products(chain, state.weights, scaled)
    return _finish(chain, state, grad, None, pulls, None)[0]


def edge_gradients_of_means(
    chain: Chain, state: Filtered, grad: Tensor, scaled: Tensor, means: Means, resident: bool
) -> tuple[Tensor, Tensor]:
    """The same where a mean is differentiated; also the gradient of edge values."""
    pulls = masses = None
    if resident:
        masses = _outer_products(chain, state.weights, means.over_incoming)
        pulls = _outer_products(chain, state.weights, scaled)
        pulls += _outer_products(chain, means.weighed, means.over_incoming)
    return _finish(chain, state, grad, means, pulls, masses)


def _outer_products(chain: Chain, before: Tensor, after: Tensor) -> Tensor:
    """Sums over time of rows [N, T, K] before and after each move, as far as edges are shared.

    The row `after` a move is 0 at the first step of a chain, where there is none: so all rows can
    stand in one matrix, and nothing has to be copied.
    """
    with full_precision(chain.emissions.device):
        if chain.is_shared:
            return before.flatten(0, 1)[:-1].T @ after.flatten(0, 1)[1:]
        return torch.bmm(before[:, :-1].mT, after[:, 1:])


def _finish(
    chain: Chain,
    state: Filtered,
    grad: Tensor,
    means: Means | None,
    pulls: Tensor | None,
    masses: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Gradients of edges and of their values; a kernel does not look at what stands in for None."""
    transitions = chain.transitions
    num_chains, num_steps, num_states = chain.emissions.shape
    found = torch.empty_like(transitions)
    of_values = found if means is None else torch.empty_like(transitions)
    given = means or Means(grad, None, None, grad, grad, grad)
    nodes = given.mean if given.node_values is None else given.node_values
    values = transitions if given.edge_values is None else given.edge_values
    inputs = transitions, values, chain.lengths, state.log_alpha, given.mean, nodes
    tiles = Tiles.of(num_states)
    constants = {
        "MEAN": 0 if means is None else means.kind,
        "R": tiles.rows,
        "BJ": tiles.columns,
        "num_warps": tiles.warps(0, grad.dtype),
        **tiles.constants,
    }
    if chain.form is EdgeForm.PER_STEP:
        moves = num_chains * (num_steps - 1)
        launch(
            "edges.of_one_step",
            [-(-moves // tiles.rows), tiles.column_blocks],
            [*inputs, grad, given.mass, found, of_values, moves, num_steps],
            **constants,
        )
        return found, of_values
    per_chain = chain.form is EdgeForm.PER_CHAIN
    launch(
        "edges.shared_by_steps",
        [num_chains if per_chain else 1, tiles.column_blocks],
        [
            *(*inputs, state.careful, grad, given.mass),
            *(grad if pulls is None else pulls, grad if masses is None else masses),
            *(found, of_values, num_chains, num_steps, num_states**2 if per_chain else 0),
        ],
        PER_CHAIN=per_chain,
        RESIDENT=pulls is not None,
        **constants,
    )
    return found, of_values
