"""Two forms of one outcome, and what makes it valid.

A *path* holds integer states `[..., T]`; an *event* holds the same as one-hot rows `[..., T, K]`.
Both are zero beyond the length of their chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.nn.functional import one_hot

from structdist.ops import enumerate_paths, in_chain
from structdist.potentials import Potentials, require_tensor

MAX_ENUMERATED = 10_000_000


class TopK(NamedTuple):
    paths: Tensor  # [k, *B, T], best first
    log_probs: Tensor  # [k, *B], -inf where a chain has fewer than k paths


class OneHotPaths(constraints.Constraint):
    """Events [..., T, K] whose rows are one-hot within `lengths` and zero beyond."""

    is_discrete = True
    event_dim = 2

    def __init__(self, lengths: Tensor, num_steps: int, num_states: int) -> None:
        self.lengths, self.num_steps, self.num_states = lengths, num_steps, num_states
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """Bool [*S, *B]: is this an event of its chain?"""
        if value.shape[-2:] != (self.num_steps, self.num_states):
            return torch.zeros(value.shape[:-2], dtype=torch.bool, device=value.device)
        active = in_chain(self.lengths, self.num_steps)
        is_zero = (value == 0).all(-1)
        return torch.where(active, _is_one_hot(value), is_zero).all(-1)

    def __repr__(self) -> str:
        return f"OneHotPaths(T={self.num_steps}, K={self.num_states})"


def _is_one_hot(value: Tensor) -> Tensor:
    """Bool [...]: which rows [..., K] hold a single one among zeros."""
    return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


def events_of(paths: Tensor, num_states: int, active: Tensor, dtype: torch.dtype) -> Tensor:
    """Paths [..., T] as events [..., T, K], given which steps [*B, T] belong to their chain."""
    return one_hot(paths, num_states).to(dtype) * active.unsqueeze(-1)


def paths_of(value: Tensor, event_shape: torch.Size) -> Tensor:
    """Paths [..., T] from events [..., T, K] (floating point or bool) or integer paths."""
    require_tensor("value", value)
    if value.is_complex():
        raise ValueError(f"value must not be complex, got {value.dtype}")
    is_event = _is_event(value)
    wanted = event_shape if is_event else event_shape[:1]
    if value.shape[max(value.dim() - len(wanted), 0) :] != wanted:
        raise ValueError(
            f"value must end in {tuple(event_shape)} (one-hot, floating point or bool) "
            f"or in {tuple(event_shape[:1])} (an integer path), "
            f"got {tuple(value.shape)} {value.dtype}"
        )
    if not is_event:
        return value.long()
    return (value.byte() if value.dtype == torch.bool else value).argmax(-1)


def _is_event(value: Tensor) -> bool:
    return value.is_floating_point() or value.dtype == torch.bool


def require_valid(value: Tensor, num_states: int, active: Tensor) -> None:
    """Raise unless a value, in either form, is valid at every active step [*B, T]."""
    if _is_event(value):
        valid, wanted = _is_one_hot(value), "one-hot rows"
    else:
        valid = (value >= 0) & (value < num_states)
        wanted = f"states in 0..{num_states - 1}"
    if not (valid | ~active).all():
        raise ValueError(f"value must hold {wanted} within the lengths")


def allowed_by(observed: Tensor, p: Potentials, validate: bool) -> Tensor:
    """Bool [*B, T, K]: the states that partial labels [*B, T] leave, -1 being unknown."""
    require_tensor("observed", observed)
    if observed.is_floating_point() or observed.is_complex() or observed.dtype == torch.bool:
        raise ValueError(f"observed must be integers, got {observed.dtype}")
    observed = p.broadcast_steps("observed", observed, torch.Size([p.num_steps]))
    out_of_range = (observed < -1) | (observed >= p.num_states)
    if validate and (out_of_range & p.active).any():
        raise ValueError(f"observed must lie in -1..{p.num_states - 1} (-1 = unknown)")
    states = torch.arange(p.num_states, device=observed.device)
    return (observed.unsqueeze(-1) == states) | (observed == -1).unsqueeze(-1)


def require_sample_shape(sample_shape: Sequence[int]) -> torch.Size:
    try:
        shape = torch.Size(sample_shape)
    except TypeError:
        raise ValueError(f"sample_shape must be a tuple of sizes, got {sample_shape!r}") from None
    if any(size < 0 for size in shape):
        raise ValueError(f"sample_shape must not hold negative sizes, got {tuple(shape)}")
    return shape


def enumerate_events(length: int, event_shape: torch.Size, like: Tensor) -> Tensor:
    """[K^n, T, K]: every event of a chain of length n, with the dtype and device of `like`."""
    num_steps, num_states = event_shape
    if num_states**length > MAX_ENUMERATED:
        raise ValueError(f"K^n = {num_states}^{length} paths are too many to enumerate")
    paths = torch.zeros(num_states**length, num_steps, dtype=torch.long, device=like.device)
    if length > 0:
        paths[:, :length] = enumerate_paths(length, num_states, like.device)
    active = in_chain(torch.tensor(length, device=like.device), num_steps)
    return events_of(paths, num_states, active, like.dtype)
