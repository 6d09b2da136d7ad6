"""The sweep from last to first that all adjoints share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from structdist.ops.edges import EdgeForm


class SegmentGrads:
    """Gradients of segments, summed as their form asks."""

    def __init__(self, like: Tensor) -> None:
        self.form = EdgeForm.of(like)
        self.total = like.new_zeros(like.shape)

    def add(self, t: int, shares: Tensor) -> None:
        """Shares [N, l, K] of all segments whose last step is t, the longest first."""
        count = shares.shape[1]
        if self.form is EdgeForm.SHARED:
            self.total[:count] += shares.sum(0).flip(0)
        elif self.form is EdgeForm.PER_CHAIN:
            self.total[:, :count] += shares.flip(1)
        else:
            first = torch.arange(t + 1 - count, t + 1, device=shares.device)
            self.total[:, first, t - first] = shares


class Back(Protocol):
    """What a sweep asks of the moves between segments."""

    def pull(self, t: int, grad_begins: Tensor, /) -> Tensor: ...

    def transitions(self) -> Tensor | None: ...


class Swept(NamedTuple):
    emissions: Tensor  # [N, T, K]
    transitions: Tensor | None
    segments: Tensor | None
    begins: Tensor  # [N, T, K]: of beginning a segment of a label at a step


def sweep_back(
    grad_ends: Tensor,
    shares_at: Callable[[int], Tensor],
    moves: Back,
    segments: SegmentGrads | None,
    more_at: Callable[[int], Tensor] | None = None,
) -> Swept:
    """Gradients of scores from that of `ends` [N, T, K], which is used up. O(N T (K^2 + L K)).

    `shares_at(t)` [N, l, K] says how what ends with step t divides among first steps, and
    `more_at(t)` what these segments get besides.
    """
    num_steps = grad_ends.shape[1]
    begins, steps = torch.zeros_like(grad_ends), torch.zeros_like(grad_ends)
    for t in reversed(range(num_steps)):
        if t + 1 < num_steps:
            grad_ends[:, t] += moves.pull(t, begins[:, t + 1])
        shares = shares_at(t) * grad_ends[:, t, None]
        if more_at is not None:
            shares = shares + more_at(t)
        since = t + 1 - shares.shape[1]
        begins[:, since : t + 1] += shares
        steps[:, since : t + 1] += shares.cumsum(1)
        if segments is not None:
            segments.add(t, shares)
    return Swept(steps, moves.transitions(), None if segments is None else segments.total, begins)
