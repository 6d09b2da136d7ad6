"""Scores of given paths, all steps at once."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, in_chain


def path_scores(chain: Chain, paths: Tensor) -> Tensor:
    """[S, N] float64: the score of each path [S, N, T]; 0 for an empty chain. O(S N T).

    A forbidden step makes the score -inf, and passes no gradient to what forbids it.
    """
    emissions, transitions, lengths = chain
    num_chains, num_steps, num_states = emissions.shape
    active = in_chain(lengths, num_steps)
    paths = torch.where(active, paths, 0)
    device = paths.device
    chains = torch.arange(num_chains, device=device)[:, None]
    steps = torch.arange(num_steps, device=device)
    nodes = (chains * num_steps + steps) * num_states + paths
    edges = paths[..., :-1] * num_states + paths[..., 1:]
    if transitions.dim() == 3:
        edges = edges + chains * num_states**2
    elif transitions.dim() == 4:
        edges = edges + (chains * (num_steps - 1) + steps[:-1]) * num_states**2
    node_scores = _pick(emissions, nodes, active)
    return node_scores + _pick(transitions, edges, active[:, 1:])


def _pick(scores: Tensor, index: Tensor, active: Tensor) -> Tensor:
    """The sum over time [S, N] of the entries at flat indices [S, N, T], where active."""
    picked = scores.reshape(-1).index_select(0, index.reshape(-1)).view(index.shape)
    forbidden = picked == -torch.inf
    picked = torch.where(active & ~forbidden, picked, 0.0).double().sum(-1)
    return torch.where((forbidden & active).any(-1), -torch.inf, picked)
