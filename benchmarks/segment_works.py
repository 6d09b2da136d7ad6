"""The work on semi-Markov chains: by structdist, by its reference recurrences, by torch-struct.

Functions of emissions, transitions and durations. They give marginals and draws as events
`[B, T, L, K]`, paths as integers `[B, T]` (k where a segment of label k begins, K + k where it goes
on), and labels as `[B, T, K + 1]`, with the beginnings of segments as their last column.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import pad

from benchmarks.operations import TEMPERATURE
from benchmarks.ours import forced
from benchmarks.problem import SegmentSize
from structdist import SemiMarkovCRF
from structdist.ops.semi_markov import reference
from structdist.ops.semi_markov.problem import SemiMarkovChain

if TYPE_CHECKING:
    import torch_struct

FORBIDDEN = -1e5  # a score for torch-struct, which has NaN gradients by -inf


def whole_segment_chains(
    emissions: Tensor, transitions: Tensor, durations: Tensor
) -> SemiMarkovChain:
    batch, num_steps, _ = emissions.shape
    lengths = torch.full((batch,), num_steps, device=emissions.device)
    return SemiMarkovChain(emissions, transitions, durations, lengths)


def _labels(straight_through: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    def labels(emissions: Tensor, transitions: Tensor, durations: Tensor) -> Tensor:
        draw = SemiMarkovCRF(emissions, transitions, durations).rsample_labels(
            temperature=TEMPERATURE, straight_through=straight_through
        )
        return torch.cat([draw.labels, draw.boundaries.unsqueeze(-1)], -1)

    return labels


STRUCTDIST = {
    "log-z": lambda e, t, d: SemiMarkovCRF(e, t, d).log_partition,
    "token-marginals": lambda e, t, d: SemiMarkovCRF(e, t, d).token_marginals,
    "marginals": lambda e, t, d: SemiMarkovCRF(e, t, d).marginals,
    "entropy": lambda e, t, d: SemiMarkovCRF(e, t, d).entropy(),
    "sample": lambda e, t, d: SemiMarkovCRF(e, t, d).sample(),
    "gumbel-ffbs": lambda e, t, d: SemiMarkovCRF(e, t, d).rsample(temperature=TEMPERATURE),
    "gumbel-ffbs-st": lambda e, t, d: SemiMarkovCRF(e, t, d).rsample(
        temperature=TEMPERATURE, straight_through=True
    ),
    "gumbel-labels": _labels(straight_through=False),
    "gumbel-labels-st": _labels(straight_through=True),
    "viterbi": lambda e, t, d: SemiMarkovCRF(e, t, d).argmax,
}


def by_backend(name: str) -> dict[str, Callable[..., Tensor]]:
    """All of structdist's operations by one of its backends."""
    return {operation: forced(name, work) for operation, work in STRUCTDIST.items()}


REFERENCE = by_backend("reference") | {
    "log-z": lambda e, t, d: reference.log_partition(whole_segment_chains(e, t, d)),
    "token-marginals": lambda e, t, d: reference.marginals(whole_segment_chains(e, t, d), 0),
    "marginals": lambda e, t, d: reference.marginals(whole_segment_chains(e, t, d), 2),
    "entropy": lambda e, t, d: reference.entropy(whole_segment_chains(e, t, d)),
    "viterbi": lambda e, t, d: reference.viterbi(whole_segment_chains(e, t, d)).path,
}


@lru_cache(1)
def _torch_struct_class() -> type[torch_struct.SemiMarkovCRF]:
    import torch_struct

    class QuietSegments(torch_struct.SemiMarkovCRF):
        arg_constraints: dict[str, object] = {}  # torch warns at every object without it

    return QuietSegments


def _segments(
    emissions: Tensor, transitions: Tensor, durations: Tensor
) -> torch_struct.SemiMarkovCRF:
    return _torch_struct_class()(_potentials(emissions, transitions, durations))


def _potentials(emissions: Tensor, transitions: Tensor, durations: Tensor) -> Tensor:
    """[B, T, L + 1, next, K], by first step and length; what follows the last segment is label 0.

    Lengths begin with 0, which no segment has.
    """
    (_, num_steps, num_labels), longest = emissions.shape, len(durations)
    total, by_length = torch.zeros_like(emissions), []
    for more in range(longest):
        total = total + pad(emissions[:, more:], (0, 0, 0, min(more, num_steps)))
        by_length.append(total + durations[more])
    own = torch.stack(by_length, 2).unsqueeze(-2)  # [B, T, L, 1, K]
    last = pad(own, (0, 0, 0, num_labels - 1), value=FORBIDDEN)
    steps = torch.arange(num_steps, device=own.device)[:, None, None, None]
    left = num_steps - steps - torch.arange(1, longest + 1, device=own.device)[:, None, None]
    outside = torch.where(left == 0, last, FORBIDDEN)
    scores = torch.where(left > 0, own + transitions.mT, outside)
    return torch.cat([torch.full_like(scores[:, :, :1], FORBIDDEN), scores], 2)


def _events(parts: Tensor) -> Tensor:
    """[B, T, L, K] from a table or an event of its own form: whatever label is next."""
    return parts.sum(-2)[:, :, 1:]


def _sample(emissions: Tensor, transitions: Tensor, durations: Tensor) -> Tensor:
    with torch.enable_grad():  # its samplers are gradients of log Z
        parts = _segments(emissions, transitions, durations).sample((1,))[0]
    return _events(parts).detach()


TORCH_STRUCT = {
    "log-z": lambda e, t, d: _segments(e, t, d).partition,
    "marginals": lambda e, t, d: _events(_segments(e, t, d).marginals),
    "entropy": lambda e, t, d: _segments(e, t, d).entropy,
    "sample": _sample,
    "gumbel-ffbs-st": lambda e, t, d: _events(_segments(e, t, d).gumbel_crf(TEMPERATURE)),
    "viterbi": lambda e, t, d: read_events(_events(_segments(e, t, d).argmax)),
}


def torch_struct_bytes(size: SegmentSize) -> int:
    """At least: a product of its first tree level is a float32 table [B, T/2, LK, LK, LK].

    Three of them are alive at once: the sum over what lies between, its transpose and its gradient.
    """
    return 3 * 4 * size.batch * size.length // 2 * (size.longest * size.states) ** 3


def read_events(events: Tensor) -> Tensor:
    """Paths [B, T] of events [B, T, L, K], be they hard or relaxed.

    From the last step back: of all segments that end there, the one with the largest share.
    """
    batch, num_steps, longest, num_labels = events.shape
    steps = torch.arange(num_steps, device=events.device)
    sizes = torch.arange(1, longest + 1, device=events.device)
    items = torch.arange(batch, device=events.device)[:, None]
    paths = torch.zeros(batch, num_steps, dtype=torch.long, device=events.device)
    end = torch.full((batch, 1), num_steps, device=events.device)
    while (end > 0).any():
        first = end - sizes  # [B, L]
        shares = events[items, first.clamp(min=0), sizes - 1]  # [B, L, K]
        shares = torch.where((first < 0).unsqueeze(-1), -1.0, shares)
        choice = shares.flatten(1).argmax(1, keepdim=True)
        begin = end - choice // num_labels - 1
        codes = choice % num_labels + num_labels * (steps > begin)
        paths = torch.where((steps >= begin) & (steps < end), codes, paths)
        end = begin.clamp(min=0)
    return paths
