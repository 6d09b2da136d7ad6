"""What the forward pass keeps, and pieces of algebra that the compiled twin shares.

Inside this backend steps come first, [T, N, K]: what a step reads and writes lies together.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import Chain, in_chain, transitions_without_padding
from structdist.ops.edges import every_edge
from structdist.ops.problem import Draw, Needs, Temperature
from structdist.semirings import softmax


class Filtered(NamedTuple):
    """The forward state. In the padding weights and sums are 0, hence log weights -inf.

    Where no sum underflows there is no `log_alpha`: `filtering.log_weights` finds it from the rest.
    """

    weights: Tensor  # [T, N, K]: weights of prefixes, the largest of each step 1
    incoming: Tensor  # [T, N, K]: scaled sums over the states before; 1 at the first step
    log_norm: Tensor  # [T, N, 1] float64: log of what each step was divided by
    log_z: Tensor  # [N] float64
    log_alpha: Tensor | None  # [T, N, K] float64: log of the weights, if any sum underflows


def active_steps(lengths: Tensor, num_steps: int) -> Tensor:
    """Which steps belong to their chain: bool [T, N, 1]."""
    return in_chain(lengths, num_steps).T.unsqueeze(-1)


def last_step(x: Tensor, lengths: Tensor) -> Tensor:
    """[N, K]: the last step of each chain (the first of an empty one), of [T, N, K]."""
    return x[_index_of_last_step(lengths, len(x))]


def at_last_step(last: Tensor, lengths: Tensor, num_steps: int) -> Tensor:
    """[T, N, K]: the rows [N, K] at the last step of each chain (see above), zeros elsewhere."""
    rows = last.new_zeros(num_steps, *last.shape)
    rows[_index_of_last_step(lengths, num_steps)] = last
    return rows


def _index_of_last_step(lengths: Tensor, num_steps: int) -> tuple[Tensor, Tensor]:
    """Within memory, whatever the lengths."""
    steps = (lengths - 1).clamp(0, num_steps - 1)
    return steps, torch.arange(len(lengths), device=lengths.device)


def finite_or_zero(x: Tensor) -> Tensor:
    return torch.where(x.isinf(), 0.0, x)


def column_peaks(transitions: Tensor) -> Tensor:
    """[..., K]: the largest score of moving into each state, 0 if all are -inf."""
    return finite_or_zero(transitions.amax(-2))


def scaled_exp(transitions: Tensor, peaks: Tensor) -> Tensor:
    """Exp of transitions, each column scaled to have 1 as its largest entry."""
    return (transitions - peaks.unsqueeze(-2)).exp_()


def surprisals(transitions: Tensor, weight: Tensor, peaks: Tensor) -> Tensor:
    """-log of the scaled exp of transitions, 0 where that is 0."""
    return torch.where(weight > 0, peaks.unsqueeze(-2) - transitions, 0.0)


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


def edge_marginals(chain: Chain, log_alpha: Tensor, nodes: Tensor) -> Tensor:
    """[N, T-1, K, K], from log weights and marginals of nodes: P(i given j after it) times P(j)."""
    edges, after = every_edge(transitions_without_padding(chain)), nodes[:, 1:].unsqueeze(-2)
    before = softmax(log_alpha[:, :-1].unsqueeze(-1) + edges, -2).to(after.dtype)
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
