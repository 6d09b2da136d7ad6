"""Two forms of one outcome of a linear chain, and what makes it valid.

A *path* holds integer states `[..., T]`; an *event* holds the same as one-hot rows `[..., T, K]`.
Both are zero beyond the length of their chain.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints

from structdist.checks import first_step, require_integers, require_range, require_tensor
from structdist.ops import enumerate_paths, in_chain, numbers_are_hidden

MAX_ENUMERATED = 10_000_000


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
        return torch.where(active, self._fits(value), is_zero).all(-1)

    def _fits(self, rows: Tensor) -> Tensor:
        return is_one_hot(rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(T={self.num_steps}, K={self.num_states})"


class RelaxedPaths(OneHotPaths):
    """Relaxed events [..., T, K], whose rows sum to one within `lengths` and are zero beyond."""

    is_discrete = False

    def _fits(self, rows: Tensor) -> Tensor:
        return (rows >= 0).all(-1) & ((rows.sum(-1) - 1).abs() < 1e-5)


def is_one_hot(rows: Tensor) -> Tensor:
    """Bool [...]: which rows [..., K] hold a single one among zeros."""
    return ((rows == 0) | (rows == 1)).all(-1) & (rows.sum(-1) == 1)


def events_of(paths: Tensor, num_states: int, active: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Paths [..., T] as events [..., T, K], given which steps [*B, T] belong to their chain.

    None says that all of them do.
    """
    if active is not None and paths.shape[-active.dim() :] != active.shape:
        paths = paths.expand(torch.broadcast_shapes(paths.shape, active.shape))
    events = torch.zeros((*paths.shape, num_states), dtype=dtype, device=paths.device)
    index = paths.unsqueeze(-1)
    ones: Any = 1.0 if active is None else active.to(dtype).expand(paths.shape).unsqueeze(-1)
    if numbers_are_hidden():  # vmap wants no change in place
        return events.scatter(-1, index, ones)
    return events.scatter_(-1, index, ones)


def is_event(value: Tensor, event_shape: torch.Size, batch_shape: torch.Size) -> bool:
    """Is a value of this shape an event (True) or an integer path (False)?

    Floating point and bool are events. Integers are what their shape says; where it says both, as
    it may for T = K, that is an error, unless an event of this shape would lack batch dimensions.
    """
    require_tensor("value", value)
    if value.is_complex():
        raise ValueError(f"value must not be complex, got {value.dtype}")
    integers = not value.is_floating_point() and value.dtype != torch.bool
    event_dims = len(event_shape)
    ends_in_event = value.dim() >= event_dims and value.shape[-event_dims:] == event_shape
    ends_in_path = integers and value.dim() >= 1 and value.shape[-1] == event_shape[0]
    if not ends_in_event and not ends_in_path:
        raise ValueError(
            f"value must end in {tuple(event_shape)} (an event) or in "
            f"{tuple(event_shape[:1])} (an integer path), got {tuple(value.shape)} {value.dtype}"
        )
    if not (ends_in_event and ends_in_path):
        return ends_in_event
    lead = value.shape[:-event_dims]
    if len(lead) < len(batch_shape) or not _broadcasts(lead, batch_shape):
        return False
    if not _broadcasts(value.shape[:-1], batch_shape):
        return True
    raise ValueError(
        f"value of shape {tuple(value.shape)} can be read as paths and, since T = K, as an "
        "event: give events as bool or floating point (value.bool()), and paths "
        "as events (dist.event_of(value))"
    )


def _broadcasts(shape: torch.Size, batch_shape: torch.Size) -> bool:
    """Do the last dimensions of a shape broadcast with those of the batch?"""
    pairs = zip(reversed(shape), reversed(batch_shape), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def require_one_hot(event: Tensor, active: Tensor) -> None:
    """Raise unless an event is one-hot at every active step [*B, T]."""
    wrong = ~is_one_hot(event) & active
    if wrong.any():
        raise ValueError(
            f"value must hold one-hot rows within the lengths, but not so at {first_step(wrong)} "
            "(relaxed draws have no log_prob; those of rsample(straight_through=True) do)"
        )


def require_states(name: str, path: Tensor, num_states: int, active: Tensor) -> None:
    """Raise unless a path holds states at every active step [*B, T]."""
    require_integers(name, path)
    require_range(name, path, 0, num_states - 1, active, " (states)")


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
