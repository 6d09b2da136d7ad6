"""The support of a chain: one-hot rows up to its length, zeros beyond."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints

from structdist.ops import in_chain


class OneHotPaths(constraints.Constraint):
    """Events [..., T, K] whose rows are one-hot within `lengths` and zero beyond."""

    is_discrete = True
    event_dim = 2

    def __init__(self, lengths: Tensor, num_steps: int, num_states: int) -> None:
        self.lengths, self.num_steps, self.num_states = lengths, num_steps, num_states
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """bool [*S, *B]: is this an event of its chain?"""
        if value.shape[-2:] != (self.num_steps, self.num_states):
            return torch.zeros(value.shape[:-2], dtype=torch.bool, device=value.device)
        active = in_chain(self.lengths, self.num_steps)
        is_zero = (value == 0).all(-1)
        return torch.where(active, is_one_hot(value), is_zero).all(-1)

    def __repr__(self) -> str:
        return f"OneHotPaths(T={self.num_steps}, K={self.num_states})"


def is_one_hot(value: Tensor) -> Tensor:
    """bool [...]: which rows [..., K] hold a single one among zeros."""
    return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)
