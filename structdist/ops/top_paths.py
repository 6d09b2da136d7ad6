"""The k best paths of a chain."""

from __future__ import annotations

import torch

from structdist.ops.chain import Chain, KBest, edges_at, in_chain, without_padding


def k_best(chain: Chain, k: int) -> KBest:
    """The k best distinct paths. O(N T K^2 k) time, O(N T K k) memory besides one step."""
    emissions, transitions, lengths = without_padding(chain)
    emissions = emissions.double()  # long chains and large scores need the digits
    batch, num_steps, num_states = emissions.shape
    active = in_chain(lengths, num_steps)
    best = emissions.new_full((batch, k, num_states), -torch.inf)  # [N, k, K]
    best[:, 0] = emissions[:, 0]
    stay = torch.arange(k * num_states, device=best.device).view(k, num_states)
    pointers = []  # into the flattened [k, K] of the step before
    for t in range(1, num_steps):
        moves = best.unsqueeze(-1) + edges_at(transitions, t - 1).unsqueeze(1)  # [N, k, K, K]
        scores, pointer = moves.flatten(1, 2).topk(k, dim=1)
        going_on = active[:, t, None, None]
        best = torch.where(going_on, scores + emissions[:, t, None], best)
        pointers.append(torch.where(going_on, pointer, stay).flatten(1))
    scores, place = best.flatten(1).topk(k, dim=1)  # [N, k]
    empty = scores.new_tensor([0.0] + [-torch.inf] * (k - 1))
    scores = torch.where(lengths[:, None] > 0, scores, empty)
    path = [place % num_states]
    for pointer in reversed(pointers):
        place = pointer.gather(1, place)
        path.append(place % num_states)
    paths = torch.stack(path[::-1], -1) * active[:, None] * ~scores.isinf()[..., None]
    return KBest(paths.transpose(0, 1), scores.T)
