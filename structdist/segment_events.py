"""The forms of one outcome of a semi-Markov chain, and what makes it valid.

An *event* is binary, `[..., T, L, K]`: 1 at `[t, l-1, k]` where a segment of label k and length l
begins at step t. *Labels and starts*, each `[..., T]`, say the label of every step, and whether a
segment begins there. A *path* `[..., T]` says both in one integer: k where a segment of label k
begins, K + k where it goes on. All are zero beyond the length of their chain.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import constraints

from structdist.checks import require_integers, require_range, require_tensor
from structdist.events import MAX_ENUMERATED
from structdist.ops import in_chain, numbers_are_hidden
from structdist.ops.semi_markov.paths import read_paths
from structdist.ops.semi_markov.problem import ends_within
from structdist.ops.semi_markov.reference import enumerate_segmentations


class SegmentLabels(NamedTuple):
    """A segmentation, by its steps."""

    labels: Tensor  #: `[..., T]`: the label of each step
    starts: Tensor  #: `[..., T]`: bool, does a segment begin here?


class RelaxedLabels(NamedTuple):
    """Relaxed draws of segmentations, by `rsample_labels`."""

    labels: Tensor  #: `[*S, *B, T, K]`: rows that sum to one within the lengths
    boundaries: Tensor  #: `[*S, *B, T]`: in 0..1, of a segment that begins here


class Tilings(constraints.Constraint):
    """Events [..., T, L, K]: segments that cover each step of their chain once, and no other."""

    is_discrete = True
    event_dim = 3

    def __init__(self, lengths: Tensor, event_shape: torch.Size) -> None:
        self.lengths, self.event_shape = lengths, event_shape
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """Bool [*S, *B]: is this an event of its chain?"""
        if value.shape[-3:] != self.event_shape:
            return torch.zeros(value.shape[:-3], dtype=torch.bool, device=value.device)
        beyond = ~in_chain(self.lengths, self.event_shape[0])[..., None, None]
        return tiles(value, self.lengths) & ((value == 0) | ~beyond).flatten(-3).all(-1)

    def __repr__(self) -> str:
        sizes = zip("TLK", self.event_shape, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={size}' for name, size in sizes)})"


class RelaxedTilings(Tilings):
    """Relaxed events [..., T, L, K]: shares of segments that end within their chain.

    Those of all segments with one last step sum to one, or to zero where no segment ends.
    """

    is_discrete = False

    def check(self, value: Tensor) -> Tensor:
        """Bool [*S, *B]: is this a relaxed event of its chain?"""
        if value.shape[-3:] != self.event_shape:
            return torch.zeros(value.shape[:-3], dtype=torch.bool, device=value.device)
        inside = ends_within(self.lengths, *self.event_shape[:2]).unsqueeze(-1)
        is_share = (value >= 0) & (value <= 1) & (inside | (value == 0))
        total = self._by_last_step(value.sum(-1))
        is_whole = (total == 0) | ((total - 1).abs() < 1e-5)
        return is_share.flatten(-3).all(-1) & is_whole.all(-1)

    def _by_last_step(self, shares: Tensor) -> Tensor:
        """[..., T]: the sum of shares [..., T, L] of all segments with each last step."""
        num_steps, longest = shares.shape[-2:]
        by_last = [
            torch.nn.functional.pad(shares[..., : num_steps - n, n], (n, 0))
            for n in range(min(longest, num_steps))
        ]
        return torch.stack(by_last).sum(0)


def tiles(event: Tensor, lengths: Tensor) -> Tensor:
    """Bool [*S, *B]: does an event tile its chain, whatever stands beyond the length?"""
    num_steps, longest, num_labels = event.shape[-3:]
    path = paths_of(event, lengths)
    is_path = read_paths(path, lengths, longest, num_labels).is_path
    same = event == events_of(path, lengths, longest, num_labels, torch.float32)
    return is_path & (same.flatten(-2).all(-1) | ~in_chain(lengths, num_steps)).all(-1)


def events_of(
    paths: Tensor, lengths: Tensor, longest: int, num_labels: int, dtype: torch.dtype
) -> Tensor:
    """Paths [..., T] as events [..., T, L, K]; zeros where they are none."""
    label, begins, size, _ = read_paths(paths, lengths, longest, num_labels)
    fits = begins & (size <= longest)
    place = (size.clamp(1, longest) - 1) * num_labels + label
    events = torch.zeros(*label.shape, longest * num_labels, dtype=dtype, device=label.device)
    scatter = events.scatter if numbers_are_hidden() else events.scatter_  # without a copy
    events = scatter(-1, place.unsqueeze(-1), fits.to(dtype).unsqueeze(-1))
    return events.unflatten(-1, (longest, num_labels))


def paths_of(event: Tensor, lengths: Tensor) -> Tensor:
    """Events [..., T, L, K] as paths [..., T]; what begins nowhere goes on from the first step."""
    num_steps, _, num_labels = event.shape[-3:]
    by_label = (event != 0).any(-2)  # [..., T, K]
    begins = by_label.any(-1)
    steps = torch.arange(num_steps, device=event.device)
    latest = torch.where(begins, steps, 0).cummax(-1).values
    label = by_label.byte().argmax(-1).gather(-1, latest)
    return from_labels(label, begins, lengths, num_labels)


def from_labels(labels: Tensor, starts: Tensor, lengths: Tensor, num_labels: int) -> Tensor:
    """Labels, of any integers, and starts [..., T] as paths [..., T], which are int64."""
    labels = labels.long()
    paths = torch.where(starts, labels, labels + num_labels)
    return torch.where(in_chain(lengths, paths.shape[-1]), paths, 0)


def require_labels(labels: Tensor, starts: Tensor, num_labels: int, active: Tensor) -> None:
    """Raise unless labels and starts are [..., T], of integers in range and of bool."""
    require_integers("labels", labels)
    require_tensor("starts", starts)
    if starts.dtype != torch.bool:
        raise ValueError(f"starts must be bool, got {starts.dtype}")
    require_range("labels", labels, 0, num_labels - 1, active)


def require_paths(name: str, paths: Tensor, lengths: Tensor, longest: int, num_labels: int) -> None:
    """Raise unless paths [..., T] are segmentations of their chains."""
    require_integers(name, paths)
    wrong = ~read_paths(paths, lengths, longest, num_labels).is_path
    if wrong.any():
        index = tuple(wrong.nonzero()[0].tolist())
        path = paths.expand(*wrong.shape, -1)[index]
        raise ValueError(
            f"{name} must hold segmentations: at each step k where a segment of label k begins, "
            f"or {num_labels} + k where it goes on, at most {longest} steps in all; got "
            f"{path.tolist()}" + (f" at index {index}" if index else "")
        )


def require_tilings(event: Tensor, lengths: Tensor) -> None:
    """Raise unless events tile their chains."""
    wrong = ~tiles(event, lengths)
    if wrong.any():
        index = tuple(wrong.nonzero()[0].tolist())
        raise ValueError(
            "value must hold a one for each segment, by first step, length and label, and the "
            "segments must cover each step within the lengths once"
            + (f": not so at index {index}" if index else "")
            + " (relaxed draws have no log_prob; those of rsample(straight_through=True) do)"
        )


def enumerate_tilings(length: int, event_shape: torch.Size, like: Tensor) -> Tensor:
    """[P, T, L, K]: every event of a chain of length n, with the dtype and device of `like`."""
    num_steps, longest, num_labels = event_shape
    counts = [1]
    for end in range(1, length + 1):
        counts.append(num_labels * sum(counts[max(end - longest, 0) :]))
    if counts[length] > MAX_ENUMERATED:
        raise ValueError(f"{counts[length]} segmentations are too many to enumerate")
    paths = enumerate_segmentations(length, longest, num_labels, like.device)
    paths = torch.nn.functional.pad(paths, (0, num_steps - length))
    lengths = torch.tensor(length, device=like.device)
    return events_of(paths, lengths, longest, num_labels, like.dtype)
