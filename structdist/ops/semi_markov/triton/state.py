"""What the forward pass keeps, and how kernels are launched over a batch of semi-Markov chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from structdist.ops.chain import Chain
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.triton import state as linear
from structdist.ops.triton.launching import Tiles


class Filtered(NamedTuple):
    """The forward state. Log weights are less the norms of all steps up to theirs.

    Padding is 0 where said, and otherwise anything.
    """

    ends: Tensor  # [N, T, K] float64: of all that ends with a segment whose last step is t
    begins: Tensor  # [N, T, K] float64: of all that may stand before a segment from t on
    steps: Tensor  # [N, T, K] float64: emissions less the norm of their step
    weights: Tensor  # [N, T, K]: exp of `ends`, the largest of each step 1; padding 0
    incoming: Tensor  # [N, T, K]: scaled sums over the labels before, if edges are resident
    log_z: Tensor  # [N] float64
    rounded_log_z: Tensor  # [N]
    transposed: Tensor  # transitions, their last two dimensions exchanged, if they are resident


def contiguous(chain: SemiMarkovChain) -> SemiMarkovChain:
    """The same in contiguous memory, as kernels want it."""
    return SemiMarkovChain(*(x.contiguous() for x in chain))


def moves_of(chain: SemiMarkovChain) -> Chain:
    """Steps and the moves between them, as those of a linear chain."""
    return Chain(chain.emissions, chain.transitions, chain.lengths)


def table_strides(segments: Tensor) -> tuple[int, int]:
    """How far apart the tables [L, K] of two chains, and of two first steps, are in memory."""
    by_chain, by_step = (*segments.stride()[:-2], 0, 0)[:2]
    return by_chain, by_step


def sweep(
    kernel: str,
    chain: SemiMarkovChain,
    arguments: Sequence[Any],
    *,
    matrices: int = 0,
    room: int = 0,
    **constants: Any,
) -> None:
    """Launch a kernel over all chains, whose programs keep so many matrices if they can.

    Their threads have room for so many more.
    """
    linear.sweep(
        kernel,
        moves_of(chain),
        [*arguments, chain.longest, *table_strides(chain.segments)],
        matrices=matrices,
        room=room,
        BL=Tiles.of(chain.emissions.shape[2]).lengths,
        **constants,
    )
