"""`log_prob` of relaxed events: the formula of exact ones, taken at rows that are not one-hot.

The score of an outcome is a sum over the entries of its event, and over products of two of them
where one state is left for another. So it has a meaning for any rows, equals the score of a path
where they are one-hot, and has a gradient with respect to them. (`LinearChainCRF.log_prob` reads
paths, and gives their events none.)
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from structdist.linear_chain import LinearChainCRF
from structdist.ops import in_chain
from structdist.segment_potentials import SegmentPotentials
from structdist.semi_markov import SemiMarkovCRF

Structure = LinearChainCRF | SemiMarkovCRF


def log_prob(dist: Structure, value: Tensor) -> Tensor:
    """`[*S, *B]`, of relaxed events `[*S, *B, *event_shape]`. O(T K^2), of segments O(T (K + L) K).

    It is -inf where an event has weight on what is forbidden.
    """
    if isinstance(dist, SemiMarkovCRF):
        scores, left, entered = segment_scores(dist), last_steps(value), value.sum(-2)
    else:
        scores, left, entered = node_scores(dist), value, value
    event_dims = tuple(range(-len(dist.event_shape), 0))
    return weighed(value, scores).sum(event_dims) + moves(dist, left, entered) - dist.log_partition


def weighed(weights: Tensor, scores: Tensor) -> Tensor:
    """Their product, in which a weight of 0 leaves nothing of a score of -inf."""
    return weights * torch.where((weights == 0) & (scores == -torch.inf), 0.0, scores)


def moves(dist: Structure, left: Tensor, entered: Tensor) -> Tensor:
    """`[*S, *B]`: the scores of leaving a state with step t and entering another with t + 1."""
    before, after = left[..., :-1, :], entered[..., 1:, :]  # [*S, *B, T-1, K]
    potentials = dist._parameters
    chain = potentials.chain if isinstance(potentials, SegmentPotentials) else potentials
    edges, varying = chain.transitions, chain.time_varying
    active = in_chain(dist.lengths, dist.event_shape[0])[..., 1:]
    if varying:
        edges = torch.where(active[..., None, None], edges, 0.0)
    forbidden = edges == -torch.inf
    allowed = torch.where(forbidden, 0.0, edges)
    total = (_through(before, allowed, varying) * after).sum((-2, -1))
    broken = (_through(before.detach(), forbidden.to(before.dtype), varying) * after.detach()) > 0
    return torch.where(broken.any(-1).any(-1), -torch.inf, total)


def _through(rows: Tensor, edges: Tensor, varying: bool) -> Tensor:
    """Rows `[..., T-1, K]` times the matrices `[..., K, K]` of their steps."""
    return (rows.unsqueeze(-2) @ edges).squeeze(-2) if varying else rows @ edges


def node_scores(dist: LinearChainCRF) -> Tensor:
    """`[*B, T, K]`: of each state at each step, start and end included, zeros in the padding."""
    steps = torch.arange(dist.event_shape[0], device=dist.lengths.device)
    scores = dist.emissions
    if dist.start is not None:
        scores = scores + torch.where((steps == 0).unsqueeze(-1), dist.start.unsqueeze(-2), 0.0)
    if dist.end is not None:
        is_last = steps == dist.lengths.unsqueeze(-1) - 1
        scores = scores + torch.where(is_last.unsqueeze(-1), dist.end.unsqueeze(-2), 0.0)
    return torch.where((steps < dist.lengths.unsqueeze(-1)).unsqueeze(-1), scores, 0.0)


def segment_scores(dist: SemiMarkovCRF) -> Tensor:
    """`[*B, T, L, K]`: of segments by first step, length and label, zeros if out of their chain."""
    num_steps, longest, _ = dist.event_shape
    active = in_chain(dist.lengths, num_steps).unsqueeze(-1)
    emissions = pad(torch.where(active, dist.emissions, 0.0), (0, 0, 0, longest))
    sums = [emissions[..., :num_steps, :]]
    for size in range(1, longest):  # -inf must not be taken off again: no differences of sums
        sums.append(sums[-1] + emissions[..., size : size + num_steps, :])
    scores = torch.stack(sums, -2)
    if dist.durations is not None:
        scores = scores + dist.durations.unsqueeze(-3)
    if dist.segments is not None:
        scores = scores + dist.segments
    first = torch.arange(num_steps, device=dist.lengths.device).unsqueeze(-1)  # [T, 1]
    behind = first + torch.arange(1, longest + 1, device=first.device)  # [T, L]
    lengths = dist.lengths[..., None, None]
    if dist.start is not None:
        at_start = (first == 0).unsqueeze(-1)
        scores = scores + torch.where(at_start, dist.start[..., None, None, :], 0.0)
    if dist.end is not None:
        at_end = (behind == lengths).unsqueeze(-1)
        scores = scores + torch.where(at_end, dist.end[..., None, None, :], 0.0)
    return torch.where((behind <= lengths).unsqueeze(-1), scores, 0.0)


def last_steps(value: Tensor) -> Tensor:
    """`[..., T, K]`: what ends with each step, of events `[..., T, L, K]`, by first steps."""
    num_steps, longest, _ = value.shape[-3:]
    ends = [
        pad(value[..., : num_steps - size, size, :], (0, 0, size, 0))
        for size in range(min(longest, num_steps))
    ]
    return torch.stack(ends).sum(0)
