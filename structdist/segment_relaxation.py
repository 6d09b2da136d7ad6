"""What a relaxed draw of segments comes to: on steps, and on events.

Kernels relax two choices for each segment of the hard draw: its label, then its length given the
hard label. They stand at the last step of that segment, `[S, N, T, K + L]`; other steps are 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from structdist import ops
from structdist.ops import in_chain
from structdist.ops.autograd import untransformed, wants_reference
from structdist.ops.semi_markov import relaxed_events as kernels
from structdist.ops.semi_markov.paths import read_paths
from structdist.ops.semi_markov.relaxed_events import every_relaxed_event
from structdist.relaxation import straight_through


def hard_choices(paths: Tensor, lengths: Tensor, longest: int, num_labels: int) -> Tensor:
    """[..., T, K + L]: bool, the label and the length of each segment of paths [..., T]."""
    label, begins, size, _ = read_paths(paths, lengths, longest, num_labels)
    num_steps = paths.shape[-1]
    steps = torch.arange(num_steps, device=paths.device)
    first = torch.where(begins, steps, 0).cummax(-1).values
    is_last = (size == 1) & in_chain(lengths, num_steps)
    so_far = (steps - first + 1).unsqueeze(-1) == torch.arange(1, longest + 1, device=paths.device)
    by_label = label.unsqueeze(-1) == torch.arange(num_labels, device=paths.device)
    return torch.cat([by_label, so_far], -1) & is_last.unsqueeze(-1)


def relaxed_labels(draw: ops.Draw, lengths: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """[S, N, T, K] and [S, N, T]: of each step, by the choices of the hard segment it is in.

    They are its relaxed label, and the relaxed probability that it begins at this step.
    """
    num_steps, num_labels = draw.path.shape[2], draw.soft.shape[3] - longest
    left = read_paths(draw.path, lengths, longest, num_labels).size.clamp(1, longest)
    steps = torch.arange(num_steps, device=left.device)
    last = (steps + left - 1).clamp(max=num_steps - 1).unsqueeze(-1)
    labels = draw.soft[..., :num_labels].gather(2, last.expand(*left.shape, num_labels))
    by_size = draw.soft[..., num_labels:].gather(2, last.expand(*left.shape, longest))
    active = in_chain(lengths, num_steps)
    boundaries = by_size.gather(-1, (left - 1).unsqueeze(-1)).squeeze(-1)
    labels = torch.where(active.unsqueeze(-1), labels, 0.0)
    return labels, torch.where(active, boundaries, 0.0)


def relaxed_events(draw: ops.Draw, longest: int) -> Tensor:
    """[S, N, T, L, K]: the relaxed label times the relaxed length of each choice.

    They stand at the first step that a segment of such a length has.
    """
    if ops.numbers_are_hidden() or draw.soft.is_meta:
        return every_relaxed_event(draw.soft, longest)
    return _apply_events(draw.soft, longest, None)


def straight_through_events(hard: Tensor, draw: ops.Draw, longest: int) -> Tensor:
    """The hard events [..., T, L, K], to the bit, with the gradient of the relaxed ones."""
    if ops.numbers_are_hidden() or draw.soft.is_meta:
        return straight_through(hard, every_relaxed_event(draw.soft, longest))
    return _apply_events(draw.soft, longest, hard)


class _Events(torch.autograd.Function):
    """Relaxed events, or hard ones in their place: then the relaxed are never built."""

    @staticmethod
    def forward(ctx: Any, soft: Tensor, longest: int, hard: Tensor | None) -> Tensor:
        ctx.save_for_backward(soft)
        ctx.longest = longest
        return kernels.relaxed_events(soft, longest) if hard is None else hard.view_as(hard)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (soft,) = ctx.saved_tensors
        grad = grad.reshape(*soft.shape[:3], *grad.shape[-2:])
        if not wants_reference(grad):
            return kernels.relaxed_events_adjoint(soft, ctx.longest, grad), None, None
        with torch.enable_grad():
            local = soft.view_as(soft)
            events = every_relaxed_event(local, ctx.longest)
        (found,) = torch.autograd.grad(events, local, grad, create_graph=torch.is_grad_enabled())
        return found, None, None


_apply_events = untransformed(_Events)
