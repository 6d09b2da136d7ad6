"""What every kernel is given: a flat batch of chains, as plain tensors."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor


class Chain(NamedTuple):
    """N chains. Start and end scores are part of the emissions; entry [i, j] goes from i to j.

    What stands at or beyond a chain's length is padding: kernels never let it matter.
    """

    emissions: Tensor  # [N, T, K]
    transitions: Tensor  # [K, K], [N, K, K] or [N, T-1, K, K]
    lengths: Tensor  # [N], integers in 0..T


class Filtered(NamedTuple):
    """What the forward pass found. Numbers only, without a graph.

    Padding is 0 where said, and otherwise anything: each backend reads only its own.
    """

    log_alpha: Tensor  # [N, T, K] float64: log weights of prefixes, the largest of each step 0
    log_norm: Tensor  # [N, T] float64: what was taken off at each step; padding 0
    weights: Tensor  # [N, T, K]: exp of log_alpha; padding 0
    arrival: Tensor  # [N, T, K]: scaled sums over the states before; step 0 is anything too
    log_z: Tensor  # [N] float64


class FilterGrads(NamedTuple):
    emissions: Tensor  # [N, T, K]
    transitions: Tensor | None  # form of the transitions; None if not asked for


class Expected(NamedTuple):
    mean: Tensor  # [N, T, K] float64: of all values so far, given the state
    value: Tensor  # [N] float64: of all values


class ExpectGrads(NamedTuple):
    emissions: Tensor  # [N, T, K]
    transitions: Tensor  # form of the transitions
    nodes: Tensor  # [N, T, K]
    edges: Tensor  # form of the transitions


class Draw(NamedTuple):
    soft: Tensor  # [S, N, T, K]: relaxed one-hot, zeros in the padding
    path: Tensor  # [S, N, T]: its hard choices, zeros in the padding


class Best(NamedTuple):
    path: Tensor  # [N, T], zeros in the padding
    score: Tensor  # [N], -inf where no path is allowed


class KBest(NamedTuple):
    paths: Tensor  # [k, N, T], zeros in the padding and where there is no k-th path
    scores: Tensor  # [k, N], best first, -inf where there is no k-th path


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Keeps autocast out of a block: products of weights need their digits."""
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def in_chain(lengths: Tensor, num_steps: int) -> Tensor:
    """Which steps belong to their chain: bool [..., T]."""
    return torch.arange(num_steps, device=lengths.device) < lengths.unsqueeze(-1)


def without_padding(chain: Chain) -> Chain:
    """Zeros in place of whatever stands beyond the lengths, so that not even NaN gets through."""
    emissions, transitions, lengths = chain
    active = in_chain(lengths, emissions.shape[1])
    emissions = torch.where(active[..., None], emissions, 0.0)
    if transitions.dim() == 4:
        transitions = torch.where(active[:, 1:, None, None], transitions, 0.0)
    return Chain(emissions, transitions, lengths)


def edges_at(transitions: Tensor, t: int) -> Tensor:
    """Scores of moving from step t to t+1, ready to broadcast: [1, K, K] or [N, K, K]."""
    if transitions.dim() == 2:
        return transitions.unsqueeze(0)
    return transitions if transitions.dim() == 3 else transitions[:, t]


def edges_into(transitions: Tensor, t: int, state: Tensor, item: Tensor | None = None) -> Tensor:
    """Scores [..., K] of moving into `state` [...] from step t to t+1.

    `item` says to which chain each state belongs; by default the last dimension counts them.
    """
    incoming = edges_at(transitions, t).transpose(-1, -2)
    if len(incoming) == 1:
        return incoming[0][state]
    item = torch.arange(state.shape[-1], device=state.device) if item is None else item
    return incoming[item, state]


def per_step(edges: Tensor) -> Tensor:
    """Edges of any form, to broadcast with [N, T-1, K, K]."""
    return edges.unsqueeze(1) if edges.dim() == 3 else edges


def same_form(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Two sets of edge scores in the larger of their forms: [K, K], [N, K, K] or [N, T-1, K, K]."""
    if left.dim() == right.dim():
        return left, right
    if left.dim() > right.dim():
        larger, smaller = left, right
    else:
        larger, smaller = right, left
    grown = (per_step(smaller) if larger.dim() == 4 else smaller).expand(larger.shape)
    return (left, grown) if larger is left else (grown, right)


def column_peaks(transitions: Tensor) -> Tensor:
    """[..., K]: the largest score of moving into each state, 0 if all are -inf."""
    peak = transitions.amax(-2)
    return torch.where(peak.isinf(), 0.0, peak)


def scaled_exp(transitions: Tensor) -> Tensor:
    """Exp of transitions, each column scaled to have 1 as its largest entry."""
    return (transitions - column_peaks(transitions).unsqueeze(-2)).exp()


def value_shift(transitions: Tensor, values: Tensor) -> Tensor:
    """[..., 1, K]: the value beside the largest score of each column."""
    return values.gather(-2, transitions.argmax(-2, keepdim=True))


def shifted_values(transitions: Tensor, weight: Tensor, values: Tensor) -> Tensor:
    """Edge values less the shift of their column, 0 where the weight is 0."""
    return torch.where(weight > 0, values - value_shift(transitions, values), 0.0)
