"""Perturb-and-MAP (PM-MRF): Gumbel noise on local scores, then Viterbi with relaxed back-tracking.

Papandreou and Yuille (2011), relaxed as in Fu et al. (2020), appendix. A biased sampler: the best
path of locally perturbed scores does not follow the chain's distribution.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist import ops
from structdist.ops.edges import EdgeForm, every_edge


def noise_shape(perturb: str, num_steps: int, num_states: int) -> torch.Size:
    """Of one draw: `[T, K]` for nodes; for edges `[1 + (T-1) K, K]`.

    In the latter, row 0 is for the first node and row 1 + t K + i for moves from state i at step t.
    """
    if perturb not in ("edges", "nodes"):
        raise ValueError(f'perturb must be "edges" or "nodes", got {perturb!r}')
    num_rows = num_steps if perturb == "nodes" else 1 + (num_steps - 1) * num_states
    return torch.Size([num_rows, num_states])


def perturb_and_map(
    chain: ops.Chain, noise: Tensor, temperature: float | Tensor, perturb: str
) -> ops.Draw:
    """Draws over S samples and N chains, from noise [S, N, *noise_shape]."""
    num_samples, num_chains, _, num_states = noise.shape
    num_steps, copies = chain.emissions.shape[1], (num_samples, num_chains)
    perturbed = _on_nodes(chain, noise) if perturb == "nodes" else _on_edges(chain, noise)
    if isinstance(temperature, Tensor):
        temperature = temperature.reshape(1, -1)
    draw = ops.relaxed_viterbi(perturbed, temperature)
    return ops.Draw(
        draw.soft.view(*copies, num_steps, num_states), draw.path.view(*copies, num_steps)
    )


def _on_nodes(chain: ops.Chain, noise: Tensor) -> ops.Chain:
    """S N chains with noise [S, N, T, K] on every node."""
    emissions, transitions, lengths = chain
    return ops.Chain(
        (emissions + noise).flatten(0, 1),
        _repeated(transitions, len(noise)),
        lengths.expand(noise.shape[:2]).flatten(),
    )


def _on_edges(chain: ops.Chain, noise: Tensor) -> ops.Chain:
    """S N chains with noise on the first node and on every edge."""
    emissions, transitions, lengths = chain
    num_steps, num_states = emissions.shape[1:]
    first = emissions[:, :1] + noise[:, :, :1]
    rest = emissions[:, 1:].expand(len(noise), -1, -1, -1)
    edge_noise = noise[:, :, 1:].unflatten(2, (num_steps - 1, num_states))
    return ops.Chain(
        torch.cat([first, rest], 2).flatten(0, 1),
        (every_edge(transitions) + edge_noise).flatten(0, 1),
        lengths.expand(noise.shape[:2]).flatten(),
    )


def perturb_segments(
    chain: ops.SemiMarkovChain, noise: Tensor, temperature: float | Tensor
) -> ops.Draw:
    """Draws over S samples and N semi-Markov chains, from noise on segments [S, N, T, L, K]."""
    num_samples = len(noise)
    emissions, transitions, segments, lengths = chain
    if isinstance(temperature, Tensor):
        temperature = temperature.reshape(1, -1)
    perturbed = ops.SemiMarkovChain(
        emissions.expand(num_samples, -1, -1, -1).flatten(0, 1),
        _repeated(transitions, num_samples),
        (every_edge(segments) + noise).flatten(0, 1),
        lengths.expand(noise.shape[:2]).flatten(),
    )
    draw, copies = ops.relaxed_viterbi(perturbed, temperature), noise.shape[:2]
    return ops.Draw(draw.soft[0].unflatten(0, copies), draw.path[0].unflatten(0, copies))


def _repeated(scores: Tensor, num_samples: int) -> Tensor:
    """Scores of moves or of segments for S N chains, unless all of them share one table."""
    if EdgeForm.of(scores) is EdgeForm.SHARED:
        return scores
    return scores.expand(num_samples, *scores.shape).flatten(0, 1)
