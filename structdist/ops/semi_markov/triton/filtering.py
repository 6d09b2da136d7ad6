"""The forward pass, its adjoint and marginals: one launch a sweep (kernels/segment_filter.py)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.problem import Grads, Needs
from structdist.ops.rescaled.state import edge_marginals
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.triton.segment_gradients import SegmentGradients
from structdist.ops.semi_markov.triton.state import Filtered, contiguous, moves_of, sweep
from structdist.ops.triton import state as linear
from structdist.ops.triton.edge_gradients import edge_gradients


def filter(chain: SemiMarkovChain) -> tuple[Filtered, None]:
    """The forward pass. O(N T (K^2 + L K)) time, O(N T K) memory.

    Whether a chain has no path is not said: that would be a wait for the device.
    """
    chain = contiguous(chain)
    emissions, resident = chain.emissions, linear.is_resident(moves_of(chain), 1)
    ends, begins, steps = (torch.empty_like(emissions, dtype=torch.float64) for _ in range(3))
    state = Filtered(
        *(ends, begins, steps),
        torch.empty_like(emissions),
        torch.empty_like(emissions) if resident else emissions.new_empty(0),
        ends.new_empty(len(ends)),
        emissions.new_empty(len(ends)),
        torch.empty_like(chain.transitions) if resident else emissions.new_empty(0),
    )
    sweep("segment_filter.forward", chain, [*chain, *state], matrices=1, room=1)
    return state, None


def log_partition(chain: SemiMarkovChain, state: Filtered, dtype: torch.dtype) -> Tensor:
    """[N], in float64 or rounded."""
    return (state.log_z if dtype == torch.float64 else state.rounded_log_z).clone()


def log_partition_adjoint(
    chain: SemiMarkovChain, state: Filtered, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of log Z [N]. O(N T (K^2 + L K))."""
    return filter_adjoint(chain, state, grad, needs).scores


class Single(NamedTuple):
    """Gradients of single segments: those that end at a step of a path, by their length."""

    of_lengths: Tensor  # [S, N, T, L]
    path: Tensor  # [S, N, T]


class Swept(NamedTuple):
    scores: tuple[Tensor, Tensor | None, Tensor | None]  # their gradients
    begins: Tensor  # [N, T, K]: that of beginning a segment of a label at a step


def filter_adjoint(
    chain: SemiMarkovChain,
    state: Filtered,
    grad: Tensor,
    needs: Needs,
    single: Single | None = None,
    by_first_step: bool = False,
) -> Swept:
    """Gradients of scores from that of log Z [N], or of `ends` [N, T, K] and single segments.

    That of segments has their form or, if asked for, [N, T, L, K].
    """
    chain, grad = contiguous(chain), grad.contiguous()
    like = chain.segments
    if by_first_step:
        like = like.new_empty(()).expand(*chain.emissions.shape[:2], *like.shape[-2:])
    segments = SegmentGradients.of(chain, like if needs[2] else None)
    resident = linear.is_resident(moves_of(chain), 1)
    emissions, begins = torch.empty_like(state.weights), torch.empty_like(state.weights)
    scaled, rest = (torch.empty_like(emissions) if resident else begins for _ in range(2))
    careful = chain.lengths.new_empty(len(grad), dtype=torch.int32)
    of_lengths, path = (emissions, chain.lengths) if single is None else single
    sweep(
        "segment_filter.adjoint",
        chain,
        [
            *(chain.transitions, state.transposed, chain.segments, chain.lengths),
            *(state.ends, state.begins, state.steps, state.weights, state.incoming),
            *(grad, grad, of_lengths.contiguous(), path.contiguous()),
            *(emissions, begins, scaled, rest, careful),
            *(*segments.arguments, 0 if single is None else len(path)),
        ],
        matrices=1,
        room=1 if chain.emissions.shape[2] <= 64 else 0,  # more threads would spill
        FROM_LOG_Z=single is None,
        SEGMENTS=needs[2],
    )
    transitions = None
    if needs[1]:
        moves = as_linear(state, careful)
        transitions = edge_gradients(moves_of(chain), moves, rest, scaled)
    return Swept((emissions, transitions, segments.summed()), begins)


def as_linear(state: Filtered, careful: Tensor) -> linear.Filtered:
    """What the gradient of edges looks at, as the state of a linear chain."""
    return linear.Filtered(
        log_alpha=state.ends,
        weights=state.weights,
        incoming=state.incoming,
        log_z=state.log_z,
        rounded_log_z=state.rounded_log_z,
        careful=careful,
        transposed=state.transposed,
    )


def marginals(chain: SemiMarkovChain, state: Filtered, part: int) -> Tensor:
    """Of labels, moves, segments or first steps; see the reference."""
    ones, needs = torch.ones_like(state.log_z), (True, False, part == 2)
    (steps, _, segments), begins = filter_adjoint(chain, state, ones, needs, by_first_step=True)
    found = steps if part == 0 else begins
    found = (found if segments is None else segments).clamp_(max=1)  # not a rounding error more
    return edge_marginals(moves_of(chain), state.ends, found) if part == 1 else found
