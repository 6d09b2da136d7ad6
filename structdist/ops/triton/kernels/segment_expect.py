"""Conditional means of values, or entropies, of semi-Markov chains, and their adjoint.

The equations are those of ops/semi_markov/rescaled/expectations.py, all of them in log space. Each
sweep is one launch. ENTROPY says which of the two it is. Values on segments come in a form of their
own, with strides for chains, first steps and lengths.
"""

import triton
import triton.language as tl

from structdist.ops.triton.kernels.expect import mean_at_end
from structdist.ops.triton.kernels.lengths import (
    add_to_table,
    hand_out,
    lengths_from,
    load_before,
    sum_over_lengths,
    table_entries,
    weigh_lengths,
)
from structdist.ops.triton.kernels.segment_filter import SIZES
from structdist.ops.triton.kernels.tiles import (
    chains_of,
    entr,
    fill_padding,
    given_after,
    last_probabilities,
    load_matrix,
    load_row,
    narrowed,
    store_row,
    zero_if_infinite,
)

VALUE_SIZES = ["value_stride", "value_step_stride", "value_length_stride"]
GRAD_SIZES = [
    "grad_table_stride",
    "grad_table_step_stride",
    "mass_table_stride",
    "mass_table_step_stride",
]


@triton.jit
def bring_along(
    mean_begins,
    node_values,
    segment_values,
    shortest,
    longer,
    row,
    ago,
    k,
    possible,
    passed,
    ENTROPY: tl.constexpr,
    K: tl.constexpr,
):
    """Means [BN, BL, KP] of what stands before segments, with the values of these.

    `passed` [BN, KP] are values on the steps of the blocks before; it is given with those of this.
    """
    brought = load_before(mean_begins, row, ago, k, possible, 0.0, K)
    if not ENTROPY:
        nodes = load_before(node_values, row, ago, k, possible, 0.0, K).to(tl.float64)
        brought += passed[:, None, :] + tl.cumsum(nodes, axis=1)
        passed += tl.sum(nodes, axis=1)
        inside = possible[:, :, None] & (k < K)[None, None, :]
        entries = segment_values + table_entries(shortest, longer, ago, k)
        brought += tl.load(entries, mask=inside, other=0.0).to(tl.float64)
    return brought, passed


@triton.jit(do_not_specialize=[*VALUE_SIZES, *SIZES])
def forward(
    transitions,
    segments,
    lengths,
    ends,
    begins,
    steps,
    node_values,
    edge_values,
    mean_ends,
    mean_begins,
    value,
    segment_values,
    value_stride,
    value_step_stride,
    value_length_stride,
    num_lengths,
    table_stride,
    table_step_stride,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    ENTROPY: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
    BL: tl.constexpr,
):
    """Means of what ends with each step and of what may stand before it, and of the whole."""
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    first_row, edges_at, table = chain * num_steps, chain * chain_stride, chain * table_stride
    value_table = chain * value_stride
    longer, value_longer = K - table_step_stride, value_length_stride - value_step_stride
    dtype = segments.dtype.element_ty
    here = tl.zeros([BN, KP], dtype=tl.float64)  # the mean of what ends with the step before
    for t in range(0, tl.max(length)):
        active = t < length
        moved = active & (t > 0)
        row = first_row + t
        step = row - first_row
        shortest = table + step * table_step_stride
        value_shortest = value_table + step * value_step_stride
        move = edges_at + (step - 1) * step_stride
        before = load_row(ends, row - 1, k, K, moved, float("-inf"))
        for first in range(0, K, BJ):
            j = first + tl.arange(0, BJ)
            scores = load_matrix(transitions, move, k, j, K, moved, float("-inf"))
            w = given_after(before, scores)
            if ENTROPY:
                into = tl.sum(w * here[:, :, None] + entr(w).to(tl.float64), axis=1)
            else:
                values = load_matrix(edge_values, move, k, j, K, moved, 0.0).to(tl.float64)
                into = tl.sum(tl.where(w > 0, w * (here[:, :, None] + values), 0.0), axis=1)
            store_row(mean_begins, row, j, K, active, into)
        tl.debug_barrier()
        log_sum, _largest = sum_over_lengths(
            begins, steps, segments, shortest, longer, row, t, k, active, num_lengths, dtype, K, BL
        )
        log_sum = zero_if_infinite(log_sum)[:, None, :]
        since = tl.zeros([BN, KP], dtype=tl.float64)
        passed = since
        new = since
        for first in range(0, tl.minimum(num_lengths, t + 1), BL):
            ago, possible = lengths_from(first, t, num_lengths, active, BL)
            logits, _lead, since = weigh_lengths(
                begins, steps, segments, shortest, longer, row, ago, k, possible, since, K
            )
            brought, passed = bring_along(
                mean_begins,
                node_values,
                segment_values,
                value_shortest,
                value_longer,
                row,
                ago,
                k,
                possible,
                passed,
                ENTROPY,
                K,
            )
            share = tl.exp((logits - log_sum).to(dtype))
            if ENTROPY:
                new += tl.sum(share * brought + entr(share).to(tl.float64), axis=1)
            else:
                new += tl.sum(tl.where(share > 0, share * brought, 0.0), axis=1)
        here = tl.where(active[:, None], new, here)
        store_row(mean_ends, row, k, K, active, here)

    has_step = length > 0
    last = last_probabilities(ends, first_row + length - 1, k, K, has_step)
    overall = tl.sum(last * mean_at_end(here, last, ENTROPY), axis=1)
    tl.store(value + chain, tl.where(has_step, overall, 0.0), mask=is_chain)


@triton.jit(do_not_specialize=[*VALUE_SIZES, *GRAD_SIZES, *SIZES])
def adjoint(
    transitions,
    segments,
    lengths,
    ends,
    begins,
    steps,
    node_values,
    edge_values,
    mean_ends,
    mean_begins,
    value,
    grad_value,
    grad_emissions,
    grad_nodes,
    grad_begins,
    mass_begins,
    segment_values,
    value_stride,
    value_step_stride,
    value_length_stride,
    grad_segments,
    grad_table_stride,
    grad_table_step_stride,
    mass_segments,
    mass_table_stride,
    mass_table_step_stride,
    num_lengths,
    table_stride,
    table_step_stride,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    ENTROPY: tl.constexpr,
    SEGMENTS: tl.constexpr,
    SEGMENT_VALUES: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
    BL: tl.constexpr,
):
    """Gradients of log weights, and those of means, which are the masses of values."""
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    first_row, edges_at, table = chain * num_steps, chain * chain_stride, chain * table_stride
    value_table, grad_table = chain * value_stride, chain * grad_table_stride
    mass_table = chain * mass_table_stride
    longer, value_longer = K - table_step_stride, value_length_stride - value_step_stride
    grad_longer, mass_longer = K - grad_table_step_stride, K - mass_table_step_stride
    longest, has_step = tl.max(length), length > 0
    dtype = grad_emissions.dtype.element_ty

    last_row = first_row + length - 1
    last = last_probabilities(ends, last_row, k, K, has_step)
    end = mean_at_end(load_row(mean_ends, last_row, k, K, has_step, 0.0), last, ENTROPY)
    overall = tl.load(value + chain, mask=has_step, other=0.0)
    scale = tl.load(grad_value + chain, mask=has_step, other=0.0).to(tl.float64)
    end_mass = (last * scale[:, None]).to(dtype)
    surplus = tl.where(last > 0, end - overall[:, None], 0.0)
    end_grad = end_mass * narrowed(surplus, dtype)

    for back in range(0, longest):
        t = longest - 1 - back
        active, follows = t < length, t < length - 1
        row = first_row + t
        step = row - first_row
        shortest = table + step * table_step_stride
        value_shortest = value_table + step * value_step_stride
        grad_shortest = grad_table + step * grad_table_step_stride
        mass_shortest = mass_table + step * mass_table_step_stride
        move = edges_at + step * step_stride
        is_last = (t == length - 1)[:, None]
        grad, mass = tl.where(is_last, end_grad, 0.0), tl.where(is_last, end_mass, 0.0)
        mean = load_row(mean_ends, row, k, K, active, 0.0)
        before = load_row(ends, row, k, K, follows, float("-inf"))
        tl.debug_barrier()
        for first in range(0, K, BJ):
            j = first + tl.arange(0, BJ)
            scores = load_matrix(transitions, move, k, j, K, follows, float("-inf"))
            w = given_after(before, scores)
            grad_after = load_row(grad_begins, row + 1, j, K, follows, 0.0)
            mass_after = load_row(mass_begins, row + 1, j, K, follows, 0.0)
            mean_j = load_row(mean_begins, row + 1, j, K, follows, 0.0)
            added = mean[:, :, None] - mean_j[:, None, :]
            if not ENTROPY:
                added += load_matrix(edge_values, move, k, j, K, follows, 0.0).to(tl.float64)
            moved_mass = w * mass_after[:, None, :]
            moved = w * grad_after[:, None, :] + moved_mass * narrowed(added, dtype)
            if ENTROPY:
                moved += mass_after[:, None, :] * entr(w)
            grad += tl.sum(moved, axis=2)
            mass += tl.sum(moved_mass, axis=2)

        log_sum, _largest = sum_over_lengths(
            begins, steps, segments, shortest, longer, row, t, k, active, num_lengths, dtype, K, BL
        )
        log_sum = zero_if_infinite(log_sum)[:, None, :]
        since = tl.zeros([BN, KP], dtype=tl.float64)
        passed = since
        covered, covered_mass = tl.zeros([BN, KP], dtype=dtype), tl.zeros([BN, KP], dtype=dtype)
        for first in range(0, tl.minimum(num_lengths, t + 1), BL):
            ago, possible = lengths_from(first, t, num_lengths, active, BL)
            logits, _lead, since = weigh_lengths(
                begins, steps, segments, shortest, longer, row, ago, k, possible, since, K
            )
            brought, passed = bring_along(
                mean_begins,
                node_values,
                segment_values,
                value_shortest,
                value_longer,
                row,
                ago,
                k,
                possible,
                passed,
                ENTROPY,
                K,
            )
            share = tl.exp((logits - log_sum).to(dtype))
            masses = share * mass[:, None, :]
            pulled = share * grad[:, None, :]
            pulled += masses * narrowed(brought - mean[:, None, :], dtype)
            if ENTROPY:
                pulled += mass[:, None, :] * entr(share)
            is_new = t == length - 1
            covered += hand_out(pulled, grad_begins, row, ago, k, possible, is_new, num_lengths, K)
            covered_mass += hand_out(
                masses, mass_begins, row, ago, k, possible, is_new, num_lengths, K
            )
            if SEGMENTS:
                add_to_table(grad_segments, grad_shortest, grad_longer, ago, k, possible, pulled, K)
            if SEGMENT_VALUES:
                add_to_table(mass_segments, mass_shortest, mass_longer, ago, k, possible, masses, K)
        store_row(grad_emissions, row, k, K, active, covered)
        store_row(grad_nodes, row, k, K, active, covered_mass)
    fill_padding(grad_emissions, chain, k, length, num_steps, K, is_chain)
    fill_padding(grad_nodes, chain, k, length, num_steps, K, is_chain)
