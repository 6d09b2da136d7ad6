"""Best prefixes of semi-Markov chains, and the adjoint of the relaxed best segmentation.

The adjoint follows the best choice before each: of a length where a segment ends, of a label where
one begins.
"""

import triton
import triton.language as tl

from structdist.ops.triton.kernels.lengths import (
    add_to_table,
    hand_out,
    lengths_from,
    weigh_lengths,
)
from structdist.ops.triton.kernels.segment_filter import GRAD_SIZES, SIZES, add_single
from structdist.ops.triton.kernels.tiles import (
    chains_of,
    fill_padding,
    load_matrix,
    load_row,
    store_row,
    widened,
)


@triton.jit(do_not_specialize=SIZES)
def forward(
    emissions,
    transitions,
    segments,
    lengths,
    ends,
    begins,
    best_length,
    best_label,
    score,
    num_lengths,
    table_stride,
    table_step_stride,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
    BL: tl.constexpr,
):
    """Best scores of what ends with a step and of what may stand before one, and of all.

    Also the length, less 1, of the last segment of the former, and the last label of the latter.
    """
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    first_row, edges_at, table = chain * num_steps, chain * chain_stride, chain * table_stride
    longer = K - table_step_stride
    here = tl.full([BN, KP], float("-inf"), tl.float64)
    for t in range(0, tl.max(length)):
        active = t < length
        moved = active & (t > 0)
        row = first_row + t
        step = row - first_row
        shortest = table + step * table_step_stride
        move = edges_at + (step - 1) * step_stride
        for first in range(0, K, BJ):
            j = first + tl.arange(0, BJ)
            scores = load_matrix(transitions, move, k, j, K, moved, float("-inf"))
            into, label = tl.max(here[:, :, None] + widened(scores), axis=1, return_indices=True)
            store_row(begins, row, j, K, active, tl.where(moved[:, None], into, 0.0))
            store_row(best_label, row, j, K, moved, label)
        tl.debug_barrier()
        best = tl.full([BN, KP], float("-inf"), tl.float64)
        size = tl.zeros([BN, KP], dtype=tl.int32)
        since = tl.zeros([BN, KP], dtype=tl.float64)
        for first in range(0, tl.minimum(num_lengths, t + 1), BL):
            ago, possible = lengths_from(first, t, num_lengths, active, BL)
            logits, _lead, since = weigh_lengths(
                begins, emissions, segments, shortest, longer, row, ago, k, possible, since, K
            )
            largest, place = tl.max(logits, axis=1, return_indices=True)
            size = tl.where(largest > best, first + place, size)
            best = tl.maximum(best, largest)
        emission = load_row(emissions, row, k, K, active, float("-inf"))
        here = tl.where(active[:, None], best + widened(emission), here)
        store_row(ends, row, k, K, active, here)
        store_row(best_length, row, k, K, active, size)
    best_of_all = tl.where(length > 0, tl.max(here, axis=1), 0.0)
    tl.store(score + chain, best_of_all, mask=is_chain)


@triton.jit(do_not_specialize=[*GRAD_SIZES, *SIZES])
def adjoint(
    lengths,
    best_length,
    best_label,
    upstream,
    of_lengths,
    path,
    grad_emissions,
    grad_begins,
    grad_segments,
    grad_table_stride,
    grad_table_step_stride,
    num_samples,
    num_lengths,
    table_stride,
    table_step_stride,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    SEGMENTS: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
    BL: tl.constexpr,
):
    """From the gradients of `ends` [N, T, K] and of single segments."""
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    first_row, grad_table = chain * num_steps, chain * grad_table_stride
    grad_longer = K - grad_table_step_stride
    longest = tl.max(length)
    for back in range(0, longest):
        t = longest - 1 - back
        active, follows = t < length, t < length - 1
        row = first_row + t
        grad_shortest = grad_table + (row - first_row) * grad_table_step_stride
        grad = load_row(upstream, row, k, K, active, 0.0)
        tl.debug_barrier()
        for first in range(0, K, BJ):
            j = first + tl.arange(0, BJ)
            label = load_row(best_label, row + 1, j, K, follows, -1)
            after = load_row(grad_begins, row + 1, j, K, follows, 0.0)
            comes = label[:, None, :] == k[None, :, None]
            grad += tl.sum(tl.where(comes, after[:, None, :], 0.0), axis=2)
        size = load_row(best_length, row, k, K, active, -1)
        covered = tl.zeros([BN, KP], dtype=grad.dtype)
        for first in range(0, tl.minimum(num_lengths, t + 1), BL):
            ago, possible = lengths_from(first, t, num_lengths, active, BL)
            shares = tl.where(size[:, None, :] == ago[None, :, None], grad[:, None, :], 0.0)
            shares = add_single(
                shares,
                of_lengths,
                path,
                chain,
                length,
                t,
                ago,
                k,
                possible,
                num_samples,
                num_lengths,
                num_chains,
                num_steps,
                K,
            )
            covered += hand_out(
                shares, grad_begins, row, ago, k, possible, t == length - 1, num_lengths, K
            )
            if SEGMENTS:
                add_to_table(grad_segments, grad_shortest, grad_longer, ago, k, possible, shares, K)
        store_row(grad_emissions, row, k, K, active, covered)
    fill_padding(grad_emissions, chain, k, length, num_steps, K, is_chain)
