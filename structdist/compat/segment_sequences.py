"""The sequences of torch-struct's semi-Markov chains, and their parts.

A sequence `[..., N]` has a label in `0..C-1` at each node where a segment begins, and at the last
node of its chain, and -1 elsewhere. Its parts are `[..., N-1, K, C, C]`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from structdist import ops


def parts_of_sequences(
    sequence: Tensor, num_labels: int, num_sizes: int, lengths: Tensor | None, validate: bool
) -> Tensor:
    """[..., N-1, K, C, C], integers: a one for each segment."""
    num_nodes = sequence.shape[-1]
    if lengths is None:
        lengths = torch.full(sequence.shape[:-1], num_nodes, device=sequence.device)
    lengths = torch.as_tensor(lengths, device=sequence.device)
    sequence = torch.where(ops.in_chain(lengths, num_nodes), sequence.long(), -1)
    if validate:
        _require_sequences(sequence, num_labels, num_sizes, lengths)
    labelled = sequence >= 0
    node = torch.arange(num_nodes, device=sequence.device)
    latest = torch.where(labelled, node, 0).cummax(-1).values
    first = pad(latest[..., :-1], (1, 0))  # where the segment begins that ends at each node
    is_end = labelled & (node > 0) & (node - first < num_sizes)
    place = (first * num_sizes + node - first) * num_labels + sequence
    place = place * num_labels + sequence.gather(-1, first).clamp(min=0)
    shape = (max(num_nodes - 1, 0), num_sizes, num_labels, num_labels)
    total = torch.Size(shape).numel()
    parts = sequence.new_zeros(*sequence.shape[:-1], total + 1)  # the last is of no segment
    parts.scatter_(-1, torch.where(is_end, place, total), 1)
    return parts[..., :total].unflatten(-1, shape)


def _require_sequences(sequence: Tensor, num_labels: int, num_sizes: int, lengths: Tensor) -> None:
    """Raise unless sequences, with -1 beyond their lengths, tile their chains with segments."""
    num_nodes = sequence.shape[-1]
    node = torch.arange(num_nodes, device=sequence.device)
    lengths = lengths.expand(sequence.shape[:-1]).unsqueeze(-1)
    out_of_range = (sequence < -1) | (sequence >= num_labels)
    unlabelled = ((node == 0) | (node == lengths - 1)) & (node < lengths) & (sequence == -1)
    latest = torch.where(sequence >= 0, node, 0).cummax(-1).values
    too_long = (node - latest >= num_sizes - 1) & (node < lengths - 1)
    for wrong, rule in (
        (out_of_range, f"labels in 0..{num_labels - 1}, or -1, within the lengths"),
        (unlabelled, "a label at the first and at the last node of each chain"),
        (too_long, f"segments of at most {num_sizes - 1} steps"),
    ):
        if wrong.any():
            *index, step = wrong.nonzero()[0].tolist()
            raise ValueError(
                f"sequence must hold {rule}: not so at node {step}"
                + (f" of index {tuple(index)}" if index else "")
            )


def sequences_of_parts(event: Tensor) -> Tensor:
    """[..., N]: the labels of nodes that parts name, and -1 elsewhere."""
    num_steps, num_sizes, _, _ = event.shape[-4:]
    first = event[..., :1, :, :, :].sum((-3, -2))  # [..., 1, C]: the labels of the first node
    nodes = pad(first, (0, 0, 0, num_steps + 1 - first.shape[-2]))  # [..., N, C]
    ends = event.sum(-1)  # [..., N-1, K, C]: by the label of the node where a segment ends
    for size in range(1, min(num_sizes, num_steps + 1)):
        nodes = nodes + pad(ends[..., : num_steps + 1 - size, size, :], (0, 0, size, 0))
    return torch.where((nodes > 0).any(-1), nodes.argmax(-1), -1)
