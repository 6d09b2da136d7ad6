"""Perturb-and-MAP (PM-MRF): Gumbel noise on local scores, then Viterbi with relaxed back-tracking.

Papandreou and Yuille (2011), relaxed as in Fu et al. (2020), appendix. A biased sampler: the best
path of locally perturbed scores does not follow the chain's distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    perturbed = _on_nodes(chain, noise) if perturb == "nodes" else _on_edges(chain, noise)
    return _best(perturbed, temperature, noise.shape[:2])


def _best(perturbed: ops.Problem, temperature: float | Tensor, copies: Sequence[int]) -> ops.Draw:
    """The relaxed best paths of S N chains, over S samples and N chains."""
    if isinstance(temperature, Tensor):
        temperature = temperature.reshape(1, -1)
    draw = ops.relaxed_viterbi(perturbed, temperature)
    return ops.Draw(draw.soft[0].unflatten(0, copies), draw.path[0].unflatten(0, copies))


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


# Semi-Markov chains ----------------------------------------------------------------------------


def segment_noise_shape(perturb: str, event_shape: torch.Size) -> torch.Size:
    """Of one draw: `[T, L, K]` for segments, `[T, K]` for nodes; for all `[T L + (T-1) K, K]`.

    In the latter, row t L + l - 1 is for segments of length l from step t on, and row
    T L + t K + i for moves from label i at step t.
    """
    num_steps, longest, num_labels = event_shape
    shapes = {
        "segments": event_shape,
        "nodes": (num_steps, num_labels),
        "all": (num_steps * longest + (num_steps - 1) * num_labels, num_labels),
    }
    if perturb not in shapes:
        raise ValueError(f'perturb must be "segments", "nodes" or "all", got {perturb!r}')
    return torch.Size(shapes[perturb])


def perturb_segments(
    chain: ops.SemiMarkovChain, noise: Tensor, temperature: float | Tensor, perturb: str
) -> ops.Draw:
    """Draws over S samples and N semi-Markov chains, from noise [S, N, *segment_noise_shape]."""
    copies = noise.shape[:2]
    on_nodes, on_moves, on_segments = _by_part(chain, noise, perturb)
    perturbed = ops.SemiMarkovChain(
        (chain.emissions.expand(*copies, -1, -1) + on_nodes).flatten(0, 1),
        _perturbed(chain.transitions, on_moves, len(noise)),
        _perturbed(chain.segments, on_segments, len(noise)),
        chain.lengths.expand(copies).flatten(),
    )
    return _best(perturbed, temperature, copies)


def _by_part(
    chain: ops.SemiMarkovChain, noise: Tensor, perturb: str
) -> tuple[Tensor | float, Tensor | None, Tensor | None]:
    """Noise on nodes [S, N, T, K], moves [S, N, T-1, K, K] and segments [S, N, T, L, K]."""
    if perturb == "nodes":
        return noise, None, None
    if perturb == "segments":
        return 0.0, None, noise
    num_steps, num_labels = chain.emissions.shape[1:]
    counts = num_steps * chain.longest, (num_steps - 1) * num_labels
    on_segments, on_moves = noise.split(counts, 2)
    on_moves = on_moves.unflatten(2, (num_steps - 1, num_labels))
    return 0.0, on_moves, on_segments.unflatten(2, (num_steps, chain.longest))


def _perturbed(scores: Tensor, noise: Tensor | None, num_samples: int) -> Tensor:
    """Scores of moves or of segments for S N chains, with noise if there is any."""
    if noise is None:
        return _repeated(scores, num_samples)
    return (every_edge(scores) + noise).flatten(0, 1)


def _repeated(scores: Tensor, num_samples: int) -> Tensor:
    """Scores of moves or of segments for S N chains, unless all of them share one table."""
    if EdgeForm.of(scores) is EdgeForm.SHARED:
        return scores
    return scores.expand(num_samples, *scores.shape).flatten(0, 1)
