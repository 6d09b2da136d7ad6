"""Scores of given segmentations, all steps at once, and their adjoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import in_chain
from structdist.ops.edges import EdgeForm, index_of_edges
from structdist.ops.finite import bounded_scores
from structdist.ops.problem import Grads, Needs
from structdist.ops.scoring import spread
from structdist.ops.semi_markov.paths import Segments, read_paths
from structdist.ops.semi_markov.problem import SemiMarkovChain


class _Picked(NamedTuple):
    """Where the scores of one kind stand that paths are made of."""

    scores: Tensor
    place: Tensor  # [S, N, T] or [S, N, T-1]: in flattened scores
    in_use: Tensor  # the same: does this one count?


def path_scores(chain: SemiMarkovChain, paths: Tensor) -> Tensor:
    """[S, N] float64, of paths [S, N, T]: 0 if the chain is empty, -inf if none. O(S N T)."""
    read = read_paths(paths, chain.lengths, chain.longest, chain.emissions.shape[-1])
    total = torch.zeros(paths.shape[:2], dtype=torch.float64, device=paths.device)
    for scores, index, counts in _picked(chain, read):
        picked = scores.reshape(-1).index_select(0, index.reshape(-1)).view(index.shape)
        total = total + torch.where(counts, bounded_scores(picked).double(), 0.0).sum(-1)
    return torch.where(read.is_path, total, -torch.inf)


def path_scores_adjoint(chain: SemiMarkovChain, paths: Tensor, grad: Tensor, needs: Needs) -> Grads:
    """Each part of a path [S, N, T] gets the gradient [S, N] of its path. O(S N T)."""
    read = read_paths(paths, chain.lengths, chain.longest, chain.emissions.shape[-1])
    found: list[Tensor | None] = []
    for (scores, index, counts), need in zip(_picked(chain, read), needs, strict=True):
        if need:
            found.append(spread(scores, index, torch.where(counts, grad.unsqueeze(-1), 0.0)))
        else:
            found.append(None)
    return found


def _picked(chain: SemiMarkovChain, read: Segments) -> Iterator[_Picked]:
    """The steps, the moves and the segments of paths."""
    emissions, transitions, segments, lengths = chain
    num_chains, num_steps, num_labels = emissions.shape
    active = in_chain(lengths, num_steps).expand(read.label.shape)
    place = torch.arange(num_chains * num_steps, device=lengths.device)
    place = place.view(num_chains, num_steps)
    yield _Picked(emissions, place * num_labels + read.label, active)
    yield _Picked(transitions, index_of_edges(read.label, transitions), read.begins[..., 1:])
    within = (read.size.clamp(1, chain.longest) - 1) * num_labels + read.label
    table = chain.longest * num_labels
    form = EdgeForm.of(segments)
    if form is EdgeForm.PER_CHAIN:
        within = within + torch.arange(num_chains, device=lengths.device)[:, None] * table
    elif form is EdgeForm.PER_STEP:
        within = within + place * table
    yield _Picked(segments, within, read.begins)
