"""Best prefixes, and the adjoint of the relaxed best path, which follows the best state before."""

import triton
import triton.language as tl

from structdist.ops.triton.kernels.tiles import (
    chains_of,
    fill_padding,
    load_matrix,
    load_row,
    store_row,
    widened,
)

SIZES = ["num_chains", "num_steps", "chain_stride", "step_stride"]


@triton.jit(do_not_specialize=SIZES)
def forward(
    emissions,
    transitions,
    lengths,
    prefix,
    came_from,
    score,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
):
    """The best score of paths that end in a state, the state before it, and the best of all."""
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    first_row, edges_at = chain * num_steps, chain * chain_stride
    has_step = length > 0
    here = load_row(emissions, first_row, k, K, has_step, float("-inf"))
    here = widened(here)
    store_row(prefix, first_row, k, K, has_step, here)
    for t in range(1, tl.max(length)):
        active = t < length
        row = first_row + t
        move = edges_at + (row - first_row - 1) * step_stride
        for first in range(0, K, BJ):
            j = first + tl.arange(0, BJ)
            scores = load_matrix(transitions, move, k, j, K, active, float("-inf"))
            moves = here[:, :, None] + widened(scores)
            best, before = tl.max(moves, axis=1, return_indices=True)
            emission = load_row(emissions, row, j, K, active, float("-inf"))
            best += widened(emission)
            store_row(prefix, row, j, K, active, best)
            store_row(came_from, row, j, K, active, before)
        tl.debug_barrier()
        new = load_row(prefix, row, k, K, active, float("-inf"))
        here = tl.where(active[:, None], new, here)
    best_of_all = tl.where(has_step, tl.max(here, axis=1), 0.0)
    tl.store(score + chain, best_of_all, mask=is_chain)


@triton.jit(do_not_specialize=SIZES)
def adjoint(
    lengths,
    came_from,
    upstream,
    grad,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
):
    """The gradient of a prefix goes to its last step, and to the prefix that it came from."""
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    first_row = chain * num_steps
    longest = tl.max(length)
    here = tl.zeros([BN, KP], dtype=grad.dtype.element_ty)
    for back in range(0, longest):
        t = longest - 1 - back
        active = t < length
        has_before = active & (t > 0)
        row = first_row + t
        here += load_row(upstream, row, k, K, active, 0.0)
        store_row(grad, row, k, K, active, here)
        tl.debug_barrier()
        pulled = tl.zeros([BN, KP], dtype=here.dtype)
        for first in range(0, K, BJ):
            j = first + tl.arange(0, BJ)
            before = load_row(came_from, row, j, K, has_before, -1)
            after = load_row(grad, row, j, K, has_before, 0.0)
            comes = before[:, None, :] == k[None, :, None]
            pulled += tl.sum(tl.where(comes, after[:, None, :], 0.0), axis=2)
        here = tl.where(has_before[:, None], pulled, here)
    fill_padding(grad, chain, k, length, num_steps, K, is_chain)


@triton.jit(do_not_specialize=["num_chains", "num_steps"])
def edge_gradient(
    lengths,
    came_from,
    grad,
    grad_edges,
    num_chains,
    num_steps,
    PER_CHAIN: tl.constexpr,
    R: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
):
    """Of edges [K, K] that all steps share, of one chain (program 0) or of all of them."""
    owner = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, KP), tl.program_id(1) * BJ + tl.arange(0, BJ)
    found = tl.zeros([KP, BJ], dtype=grad_edges.dtype.element_ty)
    first_chain, last_chain = owner, owner + 1
    if not PER_CHAIN:
        first_chain, last_chain = owner, owner + num_chains
    for n in range(first_chain, last_chain):
        length = tl.load(lengths + n).to(tl.int32)
        for first in range(1, length, R):
            t = first + tl.arange(0, R)
            row = (t + tl.zeros([R], dtype=tl.int64)) + n * num_steps
            before = load_row(came_from, row, j, K, t < length, -1)
            after = load_row(grad, row, j, K, t < length, 0.0)
            comes = before[:, None, :] == i[None, :, None]
            found += tl.sum(tl.where(comes, after[:, None, :], 0.0), axis=0)
    inside = (i < K)[:, None] & (j < K)[None, :]
    own = owner * K * K + i[:, None] * K + j[None, :]
    tl.store(grad_edges + own, found, mask=inside)
