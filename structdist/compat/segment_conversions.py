"""Conversions between `torch_struct.SemiMarkovCRF` and `SemiMarkovCRF`.

They count nodes in two ways. torch-struct has a label at the end of the last segment, ours has not.
So ours has a last segment of one step for that label in one direction, and torch-struct has one
more node, whose label is always 0, in the other.
"""

from __future__ import annotations

import torch
import torch_struct
from torch import Tensor
from torch.nn.functional import pad

from structdist import ops
from structdist.compat.plugin import require_struct
from structdist.compat.semi_markov import TorchStructSemiMarkovCRF
from structdist.ops.edges import every_edge
from structdist.semi_markov import SemiMarkovCRF


def semi_markov_to_torch_struct(crf: SemiMarkovCRF) -> TorchStructSemiMarkovCRF:
    """The same distribution: N = T + 1 nodes, the last labelled 0, K = L + 1 and C = K.

    Batch dimensions are flattened (1 if there are none). O(B T L K^2) memory.

    Example:
        >>> import torch
        >>> from structdist import SemiMarkovCRF
        >>> from structdist.compat import semi_markov_to_torch_struct
        >>> crf = SemiMarkovCRF(torch.zeros(2, 4, 3), torch.zeros(3, 3), torch.zeros(2, 3))
        >>> semi_markov_to_torch_struct(crf)
        TorchStructSemiMarkovCRF(B=2, N=5, K=3, C=3)
    """
    emissions, transitions, segments, lengths = crf._parameters.flatten()
    num_steps, longest, num_labels = crf.event_shape
    active = ops.in_chain(lengths, num_steps).unsqueeze(-1)
    first = torch.arange(num_steps, device=lengths.device).unsqueeze(-1)
    end = first + torch.arange(1, longest + 1, device=lengths.device)  # [T, L]
    ends_chain = (end == lengths[:, None, None])[..., None, None]
    within = (end <= lengths[:, None, None])[..., None, None]
    spans = _span_scores(torch.where(active, emissions, 0.0), longest)
    by_size = segments if segments.dim() != 3 else segments.unsqueeze(1)  # [N, 1 or T, L, K]
    spans = (spans + by_size).unsqueeze(-2)  # [N, T, L, 1, from]
    moves = every_edge(transitions).expand(len(lengths), num_steps - 1, -1, -1)
    moves = pad(moves, (0, 0, 0, 0, 0, 1)).transpose(-1, -2)  # [N, T, to, from], after each step
    moves = moves[:, (end - 1).clamp(max=num_steps - 1)]
    to_zero = torch.zeros(num_labels, 1, dtype=spans.dtype, device=spans.device)
    to_zero[1:] = -torch.inf
    edges = spans + torch.where(ends_chain, to_zero, moves)  # [N, T, L, to, from]
    edges = pad(torch.where(within, edges, 0.0), (0, 0, 0, 0, 1, 0))
    nodes = torch.where(lengths > 0, lengths + 1, 0)
    return TorchStructSemiMarkovCRF(edges, nodes, validate_args=crf._validate_args)


def _span_scores(emissions: Tensor, longest: int) -> Tensor:
    """[N, T, L, K]: the sums of emissions [N, T, K] over spans, by first step and length."""
    num_steps = emissions.shape[1]
    total, spans = torch.zeros_like(emissions), []
    for skipped in range(longest):
        later = emissions[:, skipped:]
        total = total + pad(later, (0, 0, 0, num_steps - later.shape[1]))
        spans.append(total)
    return torch.stack(spans, 2)


def semi_markov_from_torch_struct(dist: torch_struct.SemiMarkovCRF) -> SemiMarkovCRF:
    """The same distribution: batch shape `[B]`, T = N, L = K - 1, K = C, and emissions of 0.

    The last node of a chain is a segment of one step. Log potentials may depend on all of first
    node, length, label and next label, and `SemiMarkovCRF` adds up segments and transitions: what
    is no such sum (but for rounding) is a `ValueError`. `TorchStructSemiMarkovCRF` takes it.
    Gradients flow to some of the log potentials, and so are right for whatever these were made of
    as such sums.

    Example:
        >>> import torch, torch_struct
        >>> from structdist.compat import semi_markov_from_torch_struct
        >>> semi_markov_from_torch_struct(torch_struct.SemiMarkovCRF(torch.zeros(2, 4, 3, 2, 2)))
        SemiMarkovCRF(batch_shape=(2,), T=5, L=2, K=2)
    """
    require_struct("dist", dist, torch_struct.SemiMarkovCRF)
    if not isinstance(dist, TorchStructSemiMarkovCRF):
        dist = TorchStructSemiMarkovCRF(
            dist.log_potentials, dist.lengths, validate_args=dist._validate_args
        )
    lengths, (num_steps, num_sizes, num_labels, _) = dist._node_lengths, dist.event_shape
    segments, transitions = _split(_by_end(dist, lengths))
    num_nodes, longest = num_steps + 1, num_sizes - 1
    first = torch.arange(num_nodes, device=lengths.device).unsqueeze(-1)
    size = torch.arange(longest, device=lengths.device)  # less one
    end = first + size + 1  # [N, L]
    segments = pad(segments, (0, 0, 0, 0, 1, 0))  # [B, N, L, C], by the node where they end
    segments = segments[:, end.clamp(max=num_steps), size]
    at_end = (end >= lengths[:, None, None]).unsqueeze(-1)
    last_label = torch.where(size == 0, 0.0, -torch.inf).to(segments).unsqueeze(-1)
    return SemiMarkovCRF(
        segments.new_zeros(len(lengths), num_nodes, num_labels),
        transitions,
        None,
        lengths,
        segments=torch.where(at_end, last_label, segments),
        validate_args=dist._validate_args,
    )


def _by_end(dist: TorchStructSemiMarkovCRF, lengths: Tensor) -> Tensor:
    """[B, N-1, K-1, from, to]: scores by the node where a segment ends, -inf where none does."""
    num_steps, num_sizes = dist.event_shape[:2]
    end = torch.arange(1, num_steps + 1, device=lengths.device).unsqueeze(-1)
    size = torch.arange(1, num_sizes, device=lengths.device)
    first = end - size
    scores = dist.log_potentials[:, first.clamp(min=0), size].transpose(-1, -2)
    exists = (first >= 0) & (end < lengths[:, None, None])
    return torch.where(exists[..., None, None], scores, -torch.inf)


def _split(scores: Tensor) -> tuple[Tensor, Tensor]:
    """[B, N-1, K-1, C] and [B, N-1, C, C]: of lengths, and of moves, whose sum is `scores`."""
    by_label = scores.transpose(2, 3)  # [B, N-1, from, K-1, to]
    num_labels = by_label.shape[-1]
    pivot = (by_label > -torch.inf).flatten(-2).byte().argmax(-1)[..., None, None]
    size, target = pivot // num_labels, pivot % num_labels
    sizes = by_label.take_along_dim(target, -1)  # [B, N-1, from, K-1, 1]
    moves = by_label.take_along_dim(size, -2)  # [B, N-1, from, 1, to]
    base = moves.take_along_dim(target, -1)
    moves = torch.where(base > -torch.inf, moves - torch.where(base > -torch.inf, base, 0.0), 0.0)
    _require_equal(sizes + moves, by_label)
    return sizes.squeeze(-1).transpose(2, 3), moves.squeeze(-2)


def _require_equal(sums: Tensor, scores: Tensor) -> None:
    """Raise unless sums of lengths and moves [B, N-1, from, K-1, to] are the scores themselves."""
    sums, scores = sums.detach(), scores.detach()
    if ops.numbers_are_hidden() or scores.is_meta:
        return
    finite = scores > -torch.inf
    slack = 1e-9 if scores.dtype == torch.float64 else 1e-4
    largest = torch.where(finite, scores, 0.0).abs().amax() if scores.numel() else 0.0
    off = (sums - scores).abs() > slack * (1 + largest)
    wrong = torch.where(finite & (sums > -torch.inf), off, finite != (sums > -torch.inf))
    if wrong.any():
        index, step, label, size, target = wrong.nonzero()[0].tolist()
        raise ValueError(
            "log_potentials score the length of a segment and the label of the next one together, "
            f"which SemiMarkovCRF adds up: batch index {index}, a segment of label {label} and "
            f"length {size + 1} that ends at node {step + 1}, before label {target} "
            "(TorchStructSemiMarkovCRF takes any log potentials)"
        )
