"""What a relaxed draw of segments comes to: on steps, and on events.

Kernels relax two choices for each segment of the hard draw: its label, then its length given the
hard label. They stand at the last step of that segment, `[S, N, T, K + L]`; other steps are 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist import ops
from structdist.ops import in_chain
from structdist.ops.semi_markov.paths import read_paths


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
    if ops.numbers_are_hidden() or draw.path.is_meta:
        return every_relaxed_event(draw.soft, longest)
    num_labels = draw.soft.shape[3] - longest
    events = draw.soft.new_zeros(*draw.path.shape, longest, num_labels)
    sample, chain, last = (draw.soft.detach()[..., :num_labels] > 0).any(-1).nonzero().T
    choices = draw.soft[sample, chain, last]  # [M, K + L], of all hard choices
    first = last.unsqueeze(-1) - torch.arange(longest, device=last.device)
    choice, size = (first >= 0).nonzero().T  # the latter less one
    shares = choices[choice, num_labels + size].unsqueeze(-1) * choices[choice, :num_labels]
    return events.index_put_((sample[choice], chain[choice], first[choice, size], size), shares)


def every_relaxed_event(soft: Tensor, longest: int) -> Tensor:
    """The same, without a look at where segments end."""
    num_steps, num_labels = soft.shape[2], soft.shape[3] - longest
    first = torch.arange(num_steps, device=soft.device).unsqueeze(-1)
    size = torch.arange(longest, device=soft.device)  # less one
    last = (first + size).clamp(max=num_steps - 1)  # [T, L]
    by_label, by_size = soft[..., :num_labels], soft[..., num_labels:]
    shares = torch.where(first + size < num_steps, by_size[:, :, last, size], 0.0)
    return shares.unsqueeze(-1) * by_label[:, :, last]
