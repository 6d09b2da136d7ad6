"""Relaxed events [S, N, T, L, K] of draws of segments, and their adjoint; no graph.

Each has a compiled form, which looks only at what is not 0, and a plain one, for every device and
transform, which does not look at where segments end.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import full_precision
from structdist.ops.semi_markov.native import events
from structdist.ops.semi_markov.native.arguments import can_serve


def relaxed_events(soft: Tensor, longest: int) -> Tensor:
    """From the relaxed choices [S, N, T, K + L] of labels, and of lengths up to L."""
    make = events.relaxed_events if can_serve(soft) else every_relaxed_event
    return make(soft, longest)


def relaxed_events_adjoint(soft: Tensor, longest: int, grad: Tensor) -> Tensor:
    """The gradient of relaxed choices, from that of events."""
    compiled = can_serve(soft)
    pull = events.relaxed_events_adjoint if compiled else every_relaxed_event_adjoint
    return pull(soft, longest, grad)


def every_relaxed_event(soft: Tensor, longest: int) -> Tensor:
    """Plain, and differentiable by autograd to any order."""
    num_steps, num_labels = soft.shape[2], soft.shape[3] - longest
    first = torch.arange(num_steps, device=soft.device).unsqueeze(-1)
    size = torch.arange(longest, device=soft.device)  # less one
    last = (first + size).clamp(max=num_steps - 1)  # [T, L]
    by_label, by_size = soft[..., :num_labels], soft[..., num_labels:]
    shares = torch.where(first + size < num_steps, by_size[:, :, last, size], 0.0)
    return shares.unsqueeze(-1) * by_label[:, :, last]


def every_relaxed_event_adjoint(soft: Tensor, longest: int, grad: Tensor) -> Tensor:
    """Plain."""
    num_steps, num_labels = soft.shape[2], soft.shape[3] - longest
    last = torch.arange(num_steps, device=soft.device).unsqueeze(-1)
    size = torch.arange(longest, device=soft.device)  # less one
    first = last - size  # [T, L]
    by_last = torch.where((first >= 0).unsqueeze(-1), grad[:, :, first.clamp(min=0), size], 0.0)
    by_label, by_size = soft[..., :num_labels], soft[..., num_labels:]
    with full_precision(soft.device):
        of_label = by_size.unsqueeze(-2) @ by_last  # [S, N, T, 1, K]
        of_size = by_last @ by_label.unsqueeze(-1)  # [S, N, T, L, 1]
    return torch.cat([of_label.squeeze(-2), of_size.squeeze(-1)], -1)
