"""Scores of moves from state to state, and the three forms in which they come.

This is the only place that looks at the number of dimensions. Entry `[..., i, j]` of every form is
about moving from state `i` to state `j`.
"""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor


class EdgeForm(IntEnum):
    """Which moves share their scores; as a number, how many dimensions their tensor has."""

    SHARED = 2  # [K, K]: all chains and all steps
    PER_CHAIN = 3  # [N, K, K]: all steps of a chain
    PER_STEP = 4  # [N, T-1, K, K]: none

    @classmethod
    def of(cls, edges: Tensor) -> EdgeForm:
        return cls(edges.dim())


def are_shared(edges: Tensor) -> bool:
    """Do all moves of all chains share one matrix?"""
    return edges.dim() == EdgeForm.SHARED


def edges_at(edges: Tensor, t: int) -> Tensor:
    """Scores of moving from step t to t+1, ready to broadcast: [1, K, K] or [N, K, K]."""
    form = EdgeForm.of(edges)
    if form is EdgeForm.SHARED:
        return edges.unsqueeze(0)
    return edges if form is EdgeForm.PER_CHAIN else edges[:, t]


def edges_into(edges: Tensor, t: int, state: Tensor, item: Tensor | None = None) -> Tensor:
    """Scores [..., K] of moving into `state` [...] from step t to t+1.

    `item` says to which chain each state belongs; by default the last dimension counts them.
    """
    incoming = edges_at(edges, t).transpose(-1, -2)
    if len(incoming) == 1:
        return incoming[0][state]
    item = torch.arange(state.shape[-1], device=state.device) if item is None else item
    return incoming[item, state]


def every_edge(edges: Tensor) -> Tensor:
    """Edges of any form, to broadcast with [N, T-1, K, K]."""
    return edges.unsqueeze(1) if EdgeForm.of(edges) is EdgeForm.PER_CHAIN else edges


def same_form(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Two sets of edge scores in the larger of their forms."""
    if left.dim() == right.dim():
        return left, right
    if left.dim() < right.dim():
        return _grow(left, right), right
    return left, _grow(right, left)


def _grow(smaller: Tensor, larger: Tensor) -> Tensor:
    per_step = EdgeForm.of(larger) is EdgeForm.PER_STEP
    return (every_edge(smaller) if per_step else smaller).expand(larger.shape)


def sum_to_form(grad: Tensor, edges: Tensor) -> Tensor:
    """The gradient of edges, from that of the same edges in a larger form."""
    if grad.dim() == edges.dim():
        return grad
    if EdgeForm.of(edges) is EdgeForm.PER_CHAIN:
        return grad.sum(1)
    return grad.flatten(0, -3).sum(0)


def index_of_edges(paths: Tensor, edges: Tensor) -> Tensor:
    """[S, N, T-1]: where the moves of paths [S, N, T] stand among the flattened edges."""
    num_chains, num_moves, num_states = paths.shape[1], paths.shape[2] - 1, edges.shape[-1]
    index = paths[..., :-1] * num_states + paths[..., 1:]
    form = EdgeForm.of(edges)
    if form is EdgeForm.SHARED:
        return index
    chains = torch.arange(num_chains, device=paths.device)[:, None]
    if form is EdgeForm.PER_CHAIN:
        return index + chains * num_states**2
    steps = torch.arange(num_moves, device=paths.device)
    return index + (chains * num_moves + steps) * num_states**2


def edge_strides(edges: Tensor, num_steps: int) -> tuple[int, int]:
    """How far apart the edges of two chains, and of two steps, are in contiguous memory."""
    if are_shared(edges):
        return 0, 0
    matrix = edges.shape[-1] ** 2
    per_chain = EdgeForm.of(edges) is EdgeForm.PER_CHAIN
    return (matrix, 0) if per_chain else ((num_steps - 1) * matrix, matrix)


def sum_of_outer_products(left: Tensor, right: Tensor, form: EdgeForm) -> Tensor:
    """Outer products of rows [S, N, T-1, K], summed over all that share an edge."""
    if form is EdgeForm.SHARED:
        return left.flatten(0, 2).T @ right.flatten(0, 2)
    share = {EdgeForm.PER_CHAIN: "snti,sntj->nij", EdgeForm.PER_STEP: "snti,sntj->ntij"}
    return torch.einsum(share[form], left, right)
