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
    into: Tensor  # [N, T, K] float64: what R is found from; the same, if states are nodes
    node_values: Tensor | None  # [N, T, K] float64
    edge_values: Tensor | None  # in the form of the transitions
    mass: Tensor  # [N, T, K]: M, the gradient of F
    weighed: Tensor  # [N, T, K]: P (F - pivot), plus the entropy of P
    over_incoming: Tensor  # [N, T, K]: M over the sums that lead to a state

    @property
    def kind(self) -> int:
        """As kernels count: the entropy, values on nodes, on edges too, on edges alone."""
        if self.node_values is None:
            return 1 if self.edge_values is None else 4
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
    transitions, with_values = chain.transitions, means is not None
    num_chains, num_steps, num_states = chain.emissions.shape
    given = means or Means(grad, grad, None, None, grad, grad, grad)
    nodes = given.mean if given.node_values is None else given.node_values
    values = transitions if given.edge_values is None else given.edge_values
    means_at = given.mean, given.into, nodes
    inputs = transitions, values, chain.lengths, state.log_alpha, *means_at
    tiles = Tiles.of(num_states)
    constants = {
        "MEAN": given.kind if with_values else 0,
        "R": tiles.rows,
        "BJ": tiles.columns,
        "num_warps": tiles.warps(0, grad.dtype),
        **tiles.constants,
    }
    if chain.form is EdgeForm.PER_STEP:
        moves = num_chains * (num_steps - 1)
        found = torch.empty_like(transitions)
        of_values = torch.empty_like(transitions) if with_values else found
        launch(
            "edges.of_one_step",
            [-(-moves // tiles.rows), tiles.column_blocks],
            [*inputs, grad, given.mass, found, of_values, moves, num_steps],
            **constants,
        )
        return found, of_values
    groups, num_each = _groups(chain, resident=pulls is not None)
    found = transitions.new_empty(groups, num_states, num_states)
    of_values = torch.empty_like(found) if with_values else found
    launch(
        "edges.shared_by_steps",
        [groups, tiles.column_blocks],
        [
            *(*inputs, state.careful, grad, given.mass),
            *(grad if pulls is None else pulls, grad if masses is None else masses),
            *(found, of_values, num_each, num_chains, num_steps),
            num_states**2 if chain.form is EdgeForm.PER_CHAIN else 0,
        ],
        RESIDENT=pulls is not None,
        **constants,
    )
    if chain.form is EdgeForm.PER_CHAIN:
        return found, of_values
    if groups == 1:
        return found[0], of_values[0]
    return found.sum(0), of_values.sum(0)


def _groups(chain: Chain, *, resident: bool) -> tuple[int, int]:
    """How many groups of chains programs go through on their own, and of how many chains each.

    All matrices [K, K] of groups together take no more memory than the chains do. Where sums are
    made by matrix products, few chains are left to go through.
    """
    num_chains, num_steps, num_states = chain.emissions.shape
    if chain.form is EdgeForm.PER_CHAIN:
        return num_chains, 1
    most = 1 if resident else max(1, num_chains * num_steps // num_states)
    num_each = max(1, -(-num_chains // most))
    return max(1, -(-num_chains // num_each)), num_each
