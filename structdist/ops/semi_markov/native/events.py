"""Relaxed events, from relaxed choices of labels and lengths, and their adjoint."""

from __future__ import annotations

from ctypes import byref

import torch
from torch import Tensor

from structdist.ops.native import library
from structdist.ops.native.library import pointers
from structdist.ops.semi_markov.native.arguments import EventArguments, EventGradArguments


def relaxed_events(soft: Tensor, longest: int) -> Tensor:
    """[S, N, T, L, K]: from relaxed choices [S, N, T, K + L]."""
    soft = soft.contiguous()
    events = soft.new_empty(*soft.shape[:3], longest, soft.shape[3] - longest)
    given = _events(soft, longest, events)
    library.kernels["relaxed_events", soft.dtype](byref(given))
    return events


def relaxed_events_adjoint(soft: Tensor, longest: int, grad: Tensor) -> Tensor:
    """[S, N, T, K + L], from the gradient of events; of that, only what draws touched is read."""
    soft, grad = soft.contiguous(), grad.contiguous()
    grad_soft = torch.empty_like(soft)
    given, pulled = _events(soft, longest, None), EventGradArguments(*pointers(grad, grad_soft))
    library.kernels["relaxed_events_adjoint", soft.dtype](byref(given), byref(pulled))
    return grad_soft


def _events(soft: Tensor, longest: int, events: Tensor | None) -> EventArguments:
    num_samples, num_chains, num_steps, width = soft.shape
    sizes = num_samples * num_chains, num_steps, longest, width - longest
    return EventArguments(*sizes, torch.get_num_threads(), *pointers(soft, events))
