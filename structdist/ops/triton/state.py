"""What the forward pass keeps, and how kernels are launched over a batch of chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from structdist.ops.chain import Chain
from structdist.ops.edges import EdgeForm, edge_strides
from structdist.ops.finite import TRUST
from structdist.ops.triton.launching import Tiles, launch


class Filtered(NamedTuple):
    """The forward state. Padding is 0 where said, and otherwise anything."""

    log_alpha: Tensor  # [N, T, K] float64: log weights of prefixes, the largest of each step 0
    weights: Tensor  # [N, T, K]: exp of log_alpha; padding 0
    incoming: Tensor  # [N, T, K]: scaled sums over the states before, of chains not careful
    log_z: Tensor  # [N] float64
    rounded_log_z: Tensor  # [N]
    careful: Tensor  # [N] int32: 1 for chains that are done in log space
    transposed: Tensor  # transitions, their last two dimensions exchanged, if they are resident


def contiguous(chain: Chain) -> Chain:
    """The same in contiguous memory, as kernels want it."""
    return Chain(*(x.contiguous() for x in chain))


def sizes(chain: Chain) -> tuple[int, int, int, int]:
    """N, T, and how far apart the edges of two chains, and of two steps, are."""
    num_chains, num_steps, _ = chain.emissions.shape
    return num_chains, num_steps, *edge_strides(chain.transitions, num_steps)


def is_resident(chain: Chain, matrices: int) -> bool:
    """Do programs keep so many matrices of edges, because they are small and every step's?"""
    if chain.form is EdgeForm.PER_STEP:
        return False
    return Tiles.of(chain.emissions.shape[2]).fit_registers(matrices, chain.emissions.dtype)


def sweep(
    kernel: str,
    chain: Chain,
    arguments: Sequence[Any],
    *,
    matrices: int = 0,
    room: int = 0,
    **constants: Any,
) -> None:
    """Launch a kernel over all chains, whose programs keep so many matrices if they can.

    Their threads have room for so many more.
    """
    num_chains, num_steps, num_states = chain.emissions.shape
    tiles, dtype = Tiles.of(num_states), chain.emissions.dtype
    resident = matrices > 0 and is_resident(chain, matrices)
    if matrices > 0:
        constants |= {"TRUST": TRUST[dtype], "RESIDENT": resident}
    launch(
        kernel,
        [tiles.programs(num_chains)],
        [*arguments, *sizes(chain)],
        steps=num_steps,
        num_warps=tiles.warps(matrices + room if resident else 0, dtype),
        BN=tiles.chains,
        BJ=tiles.columns,
        **tiles.constants,
        **constants,
    )
