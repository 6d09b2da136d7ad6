"""The forward pass of semi-Markov chains and its adjoint; see ops/semi_markov/rescaled.

A program sweeps over time once. The sum over labels is a product in rescaled probability space,
with the exp of the edges in registers; sums too small to trust are made again in log space within
their step, a few columns of edges at a time. Where edges do not fit into registers, or differ from
step to step (not RESIDENT), all of them are. Sums over lengths are always in log space.
"""

import triton
import triton.language as tl

from structdist.ops.triton.kernels.lengths import (
    add_to_table,
    hand_out,
    lengths_from,
    sum_over_lengths,
    weigh_lengths,
)
from structdist.ops.triton.kernels.tiles import (
    chains_of,
    fill_padding,
    given_after,
    last_probabilities,
    load_matrix,
    load_row,
    moves_into,
    rounded,
    scaled_exp,
    scaled_exp_transposed,
    store_row,
    transpose,
    widened,
    zero_if_infinite,
)

SIZES = [
    "num_lengths",
    "table_stride",
    "table_step_stride",
    "num_chains",
    "num_steps",
    "chain_stride",
    "step_stride",
]
GRAD_SIZES = ["grad_table_stride", "grad_table_step_stride", "num_samples"]


@triton.jit
def sum_moves(transitions, move, before, found, row, k, active, K: tl.constexpr, BJ: tl.constexpr):
    """Log sums over the label before, in log space, by way of memory: `found` at `row`."""
    for first in range(0, K, BJ):
        j = first + tl.arange(0, BJ)
        scores = load_matrix(transitions, move, k, j, K, active, float("-inf"))
        peak, total, _ = moves_into(before, scores)
        log_sum = peak + tl.log(tl.where(total > 0, total, 1.0).to(tl.float64))
        store_row(found, row, j, K, active, log_sum)
    tl.debug_barrier()
    log_sums = load_row(found, row, k, K, active, float("-inf"))
    tl.debug_barrier()
    return log_sums


@triton.jit(do_not_specialize=SIZES)
def forward(
    emissions,
    transitions,
    segments,
    lengths,
    ends,
    begins,
    steps,
    weights,
    incoming,
    log_z,
    rounded_log_z,
    transposed,
    num_lengths,
    table_stride,
    table_step_stride,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    TRUST: tl.constexpr,
    RESIDENT: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
    BL: tl.constexpr,
):
    """Log weights of what ends and begins at each step, emissions less norms, and log Z.

    Also the exp of `ends`, the sums over labels, and edges `transposed` for sweeps back.
    """
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    first_row, edges_at, table = chain * num_steps, chain * chain_stride, chain * table_stride
    longer = K - table_step_stride
    dtype = weights.dtype.element_ty
    here = tl.full([BN, KP], float("-inf"), tl.float64)  # `ends` of the step before
    total_norm = tl.zeros([BN], dtype=tl.float64)
    p = tl.zeros([BN, KP], dtype=dtype)
    level = total_norm  # the largest of `here`
    if RESIDENT:
        if (tl.program_id(0) == 0) | (chain_stride > 0):
            transpose(transitions, transposed, edges_at, k, is_chain, K, BJ)
        edge, peak = scaled_exp(
            load_matrix(transitions, edges_at, k, k, K, is_chain, float("-inf"))
        )
    for t in range(0, tl.max(length)):
        active = t < length
        moved = active & (t > 0)
        row = first_row + t
        step = row - first_row
        shortest = table + step * table_step_stride
        emission = load_row(emissions, row, k, K, active, float("-inf"))
        begin = here
        if RESIDENT:
            q = tl.sum(p[:, :, None] * edge, axis=1)
            store_row(incoming, row, k, K, active, q)
            begin = tl.log(q).to(tl.float64) + (widened(peak) + level[:, None])
            small = (q < TRUST) & (emission > float("-inf")) & moved[:, None]
            if tl.max(small.to(tl.int32)) > 0:
                move = edges_at + (step - 1) * step_stride
                exact = sum_moves(transitions, move, here, begins, row, k, moved, K, BJ)
                begin = tl.where(q < TRUST, exact, begin)
        else:
            move = edges_at + (step - 1) * step_stride
            begin = sum_moves(transitions, move, here, begins, row, k, moved, K, BJ)
        begin = tl.where(moved[:, None], begin, 0.0)
        store_row(begins, row, k, K, active, begin)
        tl.debug_barrier()
        log_sum, largest = sum_over_lengths(
            begins, steps, segments, shortest, longer, row, t, k, active, num_lengths, dtype, K, BL
        )
        emission = widened(emission)
        norm = zero_if_infinite(tl.max(largest + emission, axis=1))
        total_norm += tl.where(active, norm, 0.0)
        emission -= norm[:, None]
        here = tl.where(active[:, None], emission + log_sum, here)
        level = zero_if_infinite(tl.max(here, axis=1))
        p = tl.exp((here - level[:, None]).to(dtype))
        store_row(steps, row, k, K, active, emission)
        store_row(ends, row, k, K, active, here)
        store_row(weights, row, k, K, active, p)

    overall = tl.log(tl.sum(tl.exp(here - level[:, None]), axis=1)) + (level + total_norm)
    overall = tl.where(length > 0, overall, 0.0)
    tl.store(log_z + chain, overall, mask=is_chain)
    tl.store(rounded_log_z + chain, rounded(overall, dtype), mask=is_chain)
    fill_padding(weights, chain, k, length, num_steps, K, is_chain)


@triton.jit
def add_single(
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
    K: tl.constexpr,
):
    """Shares, and gradients that the segments of paths [S, N, T] get besides, by length."""
    for sample in range(0, num_samples):
        at = (chain + sample * num_chains) * num_steps + t
        active = t < length
        code = tl.load(path + at, mask=active, other=0)
        after = tl.load(path + at + 1, mask=t < length - 1, other=0)
        is_end = active & (after < K)
        if tl.max(is_end.to(tl.int32)) > 0:
            label = tl.where(code < K, code, code - K)
            mask = possible & is_end[:, None]
            entry = of_lengths + at[:, None] * num_lengths + ago[None, :]
            given = tl.load(entry, mask=mask, other=0.0)
            is_label = (k[None, :] == label[:, None])[:, None, :]
            shares += tl.where(is_label, given[:, :, None], 0.0)
    return shares


@triton.jit(do_not_specialize=[*GRAD_SIZES, *SIZES])
def adjoint(
    transitions,
    transposed,
    segments,
    lengths,
    ends,
    begins,
    steps,
    weights,
    incoming,
    grad_log_z,
    upstream,
    of_lengths,
    path,
    grad_emissions,
    grad_begins,
    scaled,
    rest,
    careful,
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
    TRUST: tl.constexpr,
    FROM_LOG_Z: tl.constexpr,
    SEGMENTS: tl.constexpr,
    RESIDENT: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
    BL: tl.constexpr,
):
    """From the gradient of log Z [N], or of `ends` [N, T, K] and of single segments.

    The gradient of edges is made of `scaled`, that of `begins` over the sums that lead there, and
    of the `rest`, that of sums too small to trust; chains that have any are `careful`.
    """
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    first_row, edges_at, table = chain * num_steps, chain * chain_stride, chain * table_stride
    grad_table = chain * grad_table_stride
    longer, grad_longer = K - table_step_stride, K - grad_table_step_stride
    longest, has_step = tl.max(length), length > 0
    dtype = grad_emissions.dtype.element_ty
    zeros = tl.zeros([BN, KP], dtype=dtype)
    is_careful = tl.zeros([BN], dtype=tl.int32)

    if FROM_LOG_Z:  # what the last step of each chain gets waits there in memory
        last_row = first_row + length - 1
        last = last_probabilities(ends, last_row, k, K, has_step)
        grad_total = tl.load(grad_log_z + chain, mask=has_step, other=0.0).to(tl.float64)
        ending = (last * grad_total[:, None]).to(dtype)
        store_row(grad_emissions, last_row, k, K, has_step, ending)
    if RESIDENT:
        edge = scaled_exp_transposed(
            load_matrix(transposed, edges_at, k, k, K, is_chain, float("-inf"))
        )
    for back in range(0, longest):
        t = longest - 1 - back
        active, follows = t < length, t < length - 1
        row = first_row + t
        step = row - first_row
        shortest = table + step * table_step_stride
        grad_shortest = grad_table + step * grad_table_step_stride
        tl.debug_barrier()
        if FROM_LOG_Z:
            grad = load_row(grad_emissions, row, k, K, t == length - 1, 0.0)
        else:
            grad = load_row(upstream, row, k, K, active, 0.0)
        left = load_row(grad_begins, row + 1, k, K, follows, 0.0)
        if RESIDENT:
            q = load_row(incoming, row + 1, k, K, follows, 1.0)
            p = load_row(weights, row, k, K, follows, 0.0)
            over_q = tl.where(q >= TRUST, left / tl.maximum(q, TRUST), 0.0)
            store_row(scaled, row + 1, k, K, follows, over_q)
            grad += p * tl.sum(edge * over_q[:, :, None], axis=1)
            left = tl.where(q >= TRUST, 0.0, left)
            store_row(rest, row + 1, k, K, follows, left)
        has_rest = tl.max((left != 0).to(tl.int32), axis=1)
        if tl.max(has_rest) > 0:
            is_careful = tl.maximum(is_careful, has_rest)
            tl.debug_barrier()
            before = load_row(ends, row, k, K, follows, float("-inf"))
            move = edges_at + step * step_stride
            for first in range(0, K, BJ):
                j = first + tl.arange(0, BJ)
                scores = load_matrix(transitions, move, k, j, K, follows, float("-inf"))
                after = load_row(rest, row + 1, j, K, follows, 0.0)
                grad += tl.sum(given_after(before, scores) * after[:, None, :], axis=2)

        log_sum, _largest = sum_over_lengths(
            begins, steps, segments, shortest, longer, row, t, k, active, num_lengths, dtype, K, BL
        )
        log_sum = zero_if_infinite(log_sum)[:, None, :]
        since = tl.zeros([BN, KP], dtype=tl.float64)
        covered = zeros
        for first in range(0, tl.minimum(num_lengths, t + 1), BL):
            ago, possible = lengths_from(first, t, num_lengths, active, BL)
            logits, _lead, since = weigh_lengths(
                begins, steps, segments, shortest, longer, row, ago, k, possible, since, K
            )
            shares = tl.exp((logits - log_sum).to(dtype)) * grad[:, None, :]
            if not FROM_LOG_Z:
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

    tl.store(careful + chain, is_careful, mask=is_chain)
    if RESIDENT:
        store_row(scaled, first_row, k, K, has_step, zeros)
        fill_padding(scaled, chain, k, length, num_steps, K, is_chain)
    fill_padding(grad_emissions, chain, k, length, num_steps, K, is_chain)
    fill_padding(grad_begins, chain, k, length, num_steps, K, is_chain)
