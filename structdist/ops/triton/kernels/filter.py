"""The forward pass and its adjoint; the equations are those of csrc/filter.cpp.

Each program sweeps over time by products in rescaled probability space, with the exp of its edges
in registers. A chain one of whose sums is too small to trust is marked as `careful`, and the same
program sweeps over it again in log space, a few columns of edges at a time. So a sweep is one
launch, and nothing waits for the host. Where edges do not fit into registers, or differ from step
to step (not RESIDENT), every chain is careful.
"""

import triton
import triton.language as tl

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

SIZES = ["num_chains", "num_steps", "chain_stride", "step_stride"]


@triton.jit
def reached_with_small_sum(
    transitions, move, before, incoming, emissions, row, k, active, TRUST, K, BJ: tl.constexpr
):
    """Which chains [BN] have a state whose sum is small although some state leads to it."""
    found = tl.zeros([row.shape[0]], dtype=tl.int32)
    for first in range(0, K, BJ):
        j = first + tl.arange(0, BJ)
        scores = load_matrix(transitions, move, k, j, K, active, float("-inf"))
        sums = load_row(incoming, row, j, K, active, 1.0)
        emission = load_row(emissions, row, j, K, active, float("-inf"))
        leads = (before > float("-inf"))[:, :, None] & (scores > float("-inf"))
        small = (sums < TRUST) & (emission > float("-inf"))
        found = tl.maximum(found, tl.max((leads & small[:, None, :]).to(tl.int32), axis=1).max(1))
    return found


@triton.jit(do_not_specialize=SIZES)
def forward(
    emissions,
    transitions,
    lengths,
    log_alpha,
    weights,
    incoming,
    log_z,
    rounded_log_z,
    careful,
    transposed,
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
):
    """Log weights of prefixes, their exp, the sums that lead to them, log Z, and who is careful.

    Edges are left `transposed` for sweeps back, whose sums are over the states after a move.
    """
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    first_row, edges_at = chain * num_steps, chain * chain_stride
    longest, has_step = tl.max(length), length > 0

    start = widened(load_row(emissions, first_row, k, K, has_step, float("-inf")))
    norm = tl.max(start, axis=1)
    start_norm = tl.where(has_step, norm, 0.0)
    start = start - zero_if_infinite(norm)[:, None]
    p = tl.exp(start.to(weights.dtype.element_ty))
    store_row(log_alpha, first_row, k, K, has_step, start)
    store_row(weights, first_row, k, K, has_step, p)
    store_row(incoming, first_row, k, K, has_step, tl.full([BN, KP], 1.0, p.dtype))

    here, total_norm = start, start_norm
    underflows = has_step.to(tl.int32)
    if RESIDENT:
        if (tl.program_id(0) == 0) | (chain_stride > 0):
            transpose(transitions, transposed, edges_at, k, is_chain, K, BJ)
        underflows = tl.zeros([BN], dtype=tl.int32)
        edges = load_matrix(transitions, edges_at, k, k, K, is_chain, float("-inf"))
        edge, peak = scaled_exp(edges)
        for t in range(1, longest):
            active = t < length
            row = first_row + t
            emission = load_row(emissions, row, k, K, active, float("-inf"))
            q = tl.sum(p[:, :, None] * edge, axis=1)
            store_row(incoming, row, k, K, active, q)
            small = (q < TRUST) & (emission > float("-inf")) & active[:, None]
            if tl.max(small.to(tl.int32)) > 0:
                tl.debug_barrier()
                found = reached_with_small_sum(
                    transitions, edges_at, here, incoming, emissions, row, k, active, TRUST, K, BJ
                )
                underflows = tl.maximum(underflows, found)
            new = tl.log(q).to(tl.float64) + (widened(peak) + widened(emission))
            norm = tl.max(new, axis=1)
            total_norm += tl.where(active, norm, 0.0)
            here = tl.where(active[:, None], new - zero_if_infinite(norm)[:, None], here)
            p = tl.exp(here.to(p.dtype))
            store_row(log_alpha, row, k, K, active, here)
            store_row(weights, row, k, K, active, p)

    if tl.max(underflows) > 0:
        redo = underflows > 0
        here = tl.where(redo[:, None], start, here)
        total_norm = tl.where(redo, start_norm, total_norm)
        for t in range(1, longest):
            active = redo & (t < length)
            row = first_row + t
            move = edges_at + (row - first_row - 1) * step_stride
            for first in range(0, K, BJ):
                j = first + tl.arange(0, BJ)
                scores = load_matrix(transitions, move, k, j, K, active, float("-inf"))
                peak_j, sum_j, _ = moves_into(here, scores)
                log_sum = peak_j + tl.log(tl.where(sum_j > 0, sum_j, 1.0).to(tl.float64))
                store_row(log_alpha, row, j, K, active, log_sum)
            tl.debug_barrier()
            log_sums = load_row(log_alpha, row, k, K, active, float("-inf"))
            log_sums += widened(load_row(emissions, row, k, K, active, float("-inf")))
            norm = tl.max(log_sums, axis=1)
            total_norm += tl.where(active, norm, 0.0)
            here = tl.where(active[:, None], log_sums - zero_if_infinite(norm)[:, None], here)
            tl.debug_barrier()
            store_row(log_alpha, row, k, K, active, here)
            store_row(weights, row, k, K, active, tl.exp(here.to(p.dtype)))

    overall = tl.log(tl.sum(tl.exp(here), axis=1)) + total_norm
    overall = tl.where(has_step, overall, 0.0)
    tl.store(log_z + chain, overall, mask=is_chain)
    tl.store(rounded_log_z + chain, rounded(overall, weights.dtype.element_ty), mask=is_chain)
    tl.store(careful + chain, underflows, mask=is_chain)
    fill_padding(weights, chain, k, length, num_steps, K, is_chain)


@triton.jit(do_not_specialize=SIZES)
def adjoint(
    transitions,
    transposed,
    lengths,
    log_alpha,
    weights,
    incoming,
    careful,
    grad_log_z,
    upstream,
    grad_emissions,
    scaled,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    TRUST: tl.constexpr,
    FROM_LOG_Z: tl.constexpr,
    RESIDENT: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
):
    """From the gradient of log Z [N] or of log_alpha [N, T, K] to that of emissions.

    `scaled` is the gradient over the sums that lead to a state; together with `weights` it gives
    the gradient of edges. Chains that are careful have zeros there.
    """
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    is_careful = is_chain
    if RESIDENT:
        is_careful = tl.load(careful + chain, mask=is_chain, other=0) > 0
    first_row, edges_at = chain * num_steps, chain * chain_stride
    longest, has_step = tl.max(length), length > 0
    zeros = tl.zeros([BN, KP], dtype=grad_emissions.dtype.element_ty)

    ending = zeros  # the gradient of the last step of each chain
    if FROM_LOG_Z:
        last = last_probabilities(log_alpha, first_row + length - 1, k, K, has_step)
        grad_total = tl.load(grad_log_z + chain, mask=has_step, other=0.0).to(tl.float64)
        ending = (last * grad_total[:, None]).to(zeros.dtype)

    if RESIDENT:
        edges = load_matrix(transposed, edges_at, k, k, K, is_chain, float("-inf"))
        edge = scaled_exp_transposed(edges)
        grad = zeros
        for back in range(0, longest):
            t = longest - 1 - back
            active = (t < length) & (is_careful == 0)
            has_before = active & (t > 0)
            row = first_row + t
            if FROM_LOG_Z:
                grad += tl.where((t == length - 1)[:, None], ending, 0.0)
            else:
                grad += load_row(upstream, row, k, K, active, 0.0)
            q = load_row(incoming, row, k, K, active, 1.0)
            p = load_row(weights, row - 1, k, K, has_before, 0.0)
            over_q = tl.where((q >= TRUST) & has_before[:, None], grad / tl.maximum(q, TRUST), 0.0)
            store_row(grad_emissions, row, k, K, active, grad)
            store_row(scaled, row, k, K, active, over_q)
            pulled = p * tl.sum(edge * over_q[:, :, None], axis=1)
            grad = tl.where(has_before[:, None], pulled, grad)

    if tl.max(is_careful.to(tl.int32)) > 0:
        here = zeros
        for back in range(0, longest):
            t = longest - 1 - back
            active = (t < length) & is_careful
            has_before = active & (t > 0)
            row = first_row + t
            move = edges_at + (row - first_row - 1) * step_stride
            if FROM_LOG_Z:
                here += tl.where((t == length - 1)[:, None], ending, 0.0)
            else:
                here += load_row(upstream, row, k, K, active, 0.0)
            store_row(grad_emissions, row, k, K, active, here)
            store_row(scaled, row, k, K, active, zeros)
            tl.debug_barrier()
            before = load_row(log_alpha, row - 1, k, K, has_before, float("-inf"))
            pulled = zeros
            for first in range(0, K, BJ):
                j = first + tl.arange(0, BJ)
                scores = load_matrix(transitions, move, k, j, K, has_before, float("-inf"))
                after = load_row(grad_emissions, row, j, K, has_before, 0.0)
                pulled += tl.sum(given_after(before, scores) * after[:, None, :], axis=2)
            here = tl.where(has_before[:, None], pulled, here)

    fill_padding(grad_emissions, chain, k, length, num_steps, K, is_chain)
    fill_padding(scaled, chain, k, length, num_steps, K, is_chain)
