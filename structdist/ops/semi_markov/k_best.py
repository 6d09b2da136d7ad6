"""The k best segmentations, for the reference and for the backends in torch."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import in_chain
from structdist.ops.edges import edges_at
from structdist.ops.problem import KBest
from structdist.ops.semi_markov.problem import SemiMarkovChain, ending_at, without_padding


def k_best(chain: SemiMarkovChain, k: int) -> KBest:
    """The k best distinct segmentations. O(N T (K^2 + L K) k) time, O(N T K k) memory."""
    emissions, transitions, segments, lengths = without_padding(chain)
    emissions = emissions.double()  # long chains and large scores need the digits
    num_chains, num_steps, num_labels = emissions.shape
    # [N, k, K]: the best that may stand before a segment; nothing, at first, in one way
    begins = [emissions.new_full((num_chains, k, num_labels), -torch.inf)]
    begins[0][:, 0] = 0.0
    ends, by_size, by_label = [], [], []
    unfinished: list[Tensor] = []
    for t in range(num_steps):
        unfinished = [*unfinished, begins[t]][-chain.longest :]
        unfinished = [x + emissions[:, t, None] for x in unfinished]
        pieces = torch.stack(unfinished, 1) + ending_at(segments, t + 1).unsqueeze(2)
        best, pointer = pieces.flatten(1, 2).topk(k, dim=1)  # among [l, k]
        ends.append(best)
        by_size.append(pointer)
        if t + 1 < num_steps:
            moves = best.unsqueeze(-1) + edges_at(transitions, t).unsqueeze(1)  # [N, k, K, K]
            best, pointer = moves.flatten(1, 2).topk(k, dim=1)  # among [k, K]
            begins.append(best)
            by_label.append(pointer)
    last = (lengths - 1).clamp(min=0)[:, None, None]
    final = torch.stack(ends, 1).flatten(2)  # [N, T, k K]
    scores, place = final.gather(1, last.expand(-1, 1, final.shape[-1])).squeeze(1).topk(k, dim=1)
    empty = torch.where(torch.arange(k, device=scores.device) == 0, 0.0, -torch.inf)
    scores = torch.where(lengths[:, None] > 0, scores, empty)
    paths = _follow(place, by_size, by_label, lengths, (chain.longest, k, num_labels))
    return KBest((paths * ~scores.isinf()[..., None]).transpose(0, 1), scores.T)


def _follow(
    place: Tensor,
    by_size: list[Tensor],
    by_label: list[Tensor],
    lengths: Tensor,
    sizes: tuple[int, int, int],
) -> Tensor:
    """[N, k, T]: paths, from where the best ones [N, k] stand among the flattened [k, K] ends."""
    num_steps, (longest, k, num_labels) = len(by_size), sizes
    rank, label = place // num_labels, place % num_labels
    ending, begin = lengths[:, None].expand_as(place), torch.zeros_like(place)
    path = []
    for t in reversed(range(num_steps)):
        ends_here = ending == t + 1
        if t + 1 < num_steps:
            pointer = by_label[t].flatten(1).gather(1, rank * num_labels + label)
            moved = ends_here & (lengths > t + 1)[:, None]
            rank = torch.where(moved, pointer // num_labels, rank)
            label = torch.where(moved, pointer % num_labels, label)
        pointer = by_size[t].flatten(1).gather(1, rank * num_labels + label)
        earliest = max(t + 1 - longest, 0)
        begin = torch.where(ends_here, earliest + pointer // k, begin)
        rank = torch.where(ends_here, pointer % k, rank)
        path.append(torch.where(begin == t, label, label + num_labels))
        ending = torch.where(begin == t, t, torch.where(ends_here, 0, ending))
    return torch.stack(path[::-1], -1) * in_chain(lengths, num_steps)[:, None]
