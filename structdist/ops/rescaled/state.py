"""What the forward pass keeps, and pieces of algebra that the compiled twin shares."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import Chain, without_padding
from structdist.ops.edges import every_edge
from structdist.ops.problem import Draw, Needs, Temperature
from structdist.semirings import softmax


class Filtered(NamedTuple):
    """The forward state. Padding is 0 where said, and otherwise anything."""

    log_alpha: Tensor  # [N, T, K] float64: log weights of prefixes, the largest of each step 0
    weights: Tensor  # [N, T, K]: exp of log_alpha; padding 0
    incoming: Tensor  # [N, T, K]: scaled sums over the states before; step 0 is anything too
    log_z: Tensor  # [N] float64


def column_peaks(transitions: Tensor) -> Tensor:
    """[..., K]: the largest score of moving into each state, 0 if all are -inf."""
    peak = transitions.amax(-2)
    return torch.where(peak.isinf(), 0.0, peak)


def scaled_exp(transitions: Tensor) -> Tensor:
    """Exp of transitions, each column scaled to have 1 as its largest entry."""
    return (transitions - column_peaks(transitions).unsqueeze(-2)).exp()


def surprisals(transitions: Tensor, weight: Tensor) -> Tensor:
    """-log of the scaled exp of transitions, 0 where that is 0."""
    return torch.where(weight > 0, column_peaks(transitions).unsqueeze(-2) - transitions, 0.0)


def narrowed(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Rounded to a dtype, so far from overflow that a sum of a million of them is finite too."""
    limit = torch.finfo(dtype).max / 2**20
    return x.clamp(-limit, limit).to(dtype)


def value_shift(transitions: Tensor, values: Tensor) -> Tensor:
    """[..., 1, K]: the value beside the largest score of each column."""
    return values.gather(-2, transitions.argmax(-2, keepdim=True))


def shifted_values(transitions: Tensor, weight: Tensor, values: Tensor) -> Tensor:
    """Edge values less the shift of their column, 0 where the weight is 0."""
    double = values.double()
    shifted = narrowed(double - value_shift(transitions, double), values.dtype)
    return torch.where(weight > 0, shifted, 0.0)


def edge_marginals(chain: Chain, filtered: Filtered, nodes: Tensor) -> Tensor:
    """[N, T-1, K, K], from the marginals of nodes: P(i given j after it) times P(j)."""
    after = nodes[:, 1:].unsqueeze(-2)
    edges = every_edge(without_padding(chain).transitions)
    before = softmax(filtered.log_alpha[:, :-1, :, None] + edges, -2).to(after.dtype)
    return torch.where(after > 0, before * after, 0.0)


def per_sample(temperature: Temperature) -> Temperature:
    """A temperature that divides [S, N, T, K]."""
    return temperature[..., None, None] if isinstance(temperature, Tensor) else temperature


def grad_of_temperature(
    draw: Draw, temperature: Temperature, grad: Tensor, needs: Needs
) -> Tensor | None:
    """The gradient of temperatures, from that of the relaxed draws [S, N, T, K], if it is wanted.

    With logits l and softmax s of l / temperature, s * (l - mean of l) / temperature^2 goes to the
    temperature, with a minus; and l / temperature is log s but for a constant, which drops out.
    """
    if not needs[-1] or not isinstance(temperature, Tensor):
        return None
    soft, grad = draw.soft.double(), grad.double()
    pulled = soft * (grad - (grad * soft).sum(-1, keepdim=True)) / per_sample(temperature)
    by_draw = -torch.where(soft > 0, pulled * soft.log(), 0.0).sum((-1, -2))
    return by_draw.sum_to_size(temperature.shape)
