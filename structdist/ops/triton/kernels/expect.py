"""Conditional means of values, or entropies, and their adjoint: the equations of csrc/expect.cpp.

Like those of kernels/filter.py, each sweep is one launch, and chains that are careful (all of them
if edges are not RESIDENT) are done in log space by the same program. ENTROPY says which of the two
it is; without EDGE_VALUES, values are on nodes alone.
"""

import triton
import triton.language as tl

from structdist.ops.triton.kernels.tiles import (
    chains_of,
    entr,
    fill_padding,
    given_after,
    last_probabilities,
    load_matrix,
    load_row,
    narrowed,
    scaled_exp,
    scaled_exp_transposed,
    store_row,
    value_shift,
)

SIZES = ["num_chains", "num_steps", "chain_stride", "step_stride"]


@triton.jit
def load_edges(
    transitions,
    edge_values,
    move,
    k,
    K: tl.constexpr,
    active,
    ENTROPY: tl.constexpr,
    EDGE_VALUES: tl.constexpr,
):
    """The scaled exp of edges, the same times what they carry, and what was left out of that."""
    scores = load_matrix(transitions, move, k, k, K, active, float("-inf"))
    edge, peak = scaled_exp(scores)
    shift = (peak * 0).to(tl.float64)
    carried = edge
    if ENTROPY:
        carried = entr(edge)
    elif EDGE_VALUES:
        values = load_matrix(edge_values, move, k, k, K, active, 0.0)
        best = value_shift(scores, values)
        carried = tl.where(edge > 0, edge * narrowed(values - best[:, None, :], edge.dtype), 0.0)
        shift = best.to(tl.float64)
    return edge, carried, shift


@triton.jit
def load_edges_transposed(
    transposed,
    values_transposed,
    offset,
    k,
    K: tl.constexpr,
    active,
    ENTROPY: tl.constexpr,
    EDGE_VALUES: tl.constexpr,
):
    """The same of matrices whose rows are states after a move, [BN, J, I]."""
    scores = load_matrix(transposed, offset, k, k, K, active, float("-inf"))
    edge = scaled_exp_transposed(scores)
    shift = tl.zeros([offset.shape[0], k.shape[0]], dtype=tl.float64)
    carried = edge
    if ENTROPY:
        carried = entr(edge)
    elif EDGE_VALUES:
        values = load_matrix(values_transposed, offset, k, k, K, active, 0.0)
        is_best = k[None, None, :] == tl.argmax(scores, axis=2)[:, :, None]
        best = tl.sum(tl.where(is_best, values, 0.0), axis=2)
        carried = tl.where(edge > 0, edge * narrowed(values - best[:, :, None], edge.dtype), 0.0)
        shift = best.to(tl.float64)
    return edge, carried, shift


@triton.jit
def weigh(p, mean, ENTROPY: tl.constexpr):
    """P (F - pivot) or P (F - log P - pivot) [BN, K], and the pivot [BN].

    The pivot is the mean of the likeliest state, so that products see small numbers only.
    """
    is_likeliest = p >= tl.max(p, axis=1)[:, None]
    pivot = tl.max(tl.where(is_likeliest, mean, float("-inf")), axis=1)
    weighed = p * narrowed(mean - pivot[:, None], p.dtype)
    if ENTROPY:
        weighed += entr(p)
    return weighed, pivot


@triton.jit
def log_of_trusted(q, TRUST: tl.constexpr):
    return tl.log(tl.where(q >= TRUST, q, 1.0)).to(tl.float64)


@triton.jit
def mean_at_end(mean, last, ENTROPY: tl.constexpr):
    """The mean of a whole path given its last state; 0 where that is impossible."""
    if ENTROPY:
        mean = mean - tl.log(tl.where(last > 0, last, 1.0))
    return tl.where(last > 0, mean, 0.0)


@triton.jit(do_not_specialize=SIZES)
def forward(
    transitions,
    lengths,
    log_alpha,
    weights,
    incoming,
    careful,
    node_values,
    edge_values,
    mean,
    value,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    TRUST: tl.constexpr,
    ENTROPY: tl.constexpr,
    EDGE_VALUES: tl.constexpr,
    RESIDENT: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
):
    """Conditional means F [N, T, K], and the mean of the whole path [N]."""
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    is_careful = is_chain
    if RESIDENT:
        is_careful = tl.load(careful + chain, mask=is_chain, other=0) > 0
    first_row, edges_at = chain * num_steps, chain * chain_stride
    longest, has_step = tl.max(length), length > 0

    start = tl.zeros([BN, KP], dtype=tl.float64)
    if not ENTROPY:
        start = load_row(node_values, first_row, k, K, has_step, 0.0)
    store_row(mean, first_row, k, K, has_step, start)
    here = start
    if RESIDENT:
        edge, carried, shift = load_edges(
            transitions, edge_values, edges_at, k, K, is_chain, ENTROPY, EDGE_VALUES
        )
        for t in range(1, longest):
            active = (t < length) & (is_careful == 0)
            row = first_row + t
            p = load_row(weights, row - 1, k, K, active, 0.0)
            q = load_row(incoming, row, k, K, active, 1.0)
            weighed, pivot = weigh(p, here, ENTROPY)
            total = tl.sum(weighed[:, :, None] * edge, axis=1)
            if ENTROPY or EDGE_VALUES:
                total += tl.sum(p[:, :, None] * carried, axis=1)
            ratio = tl.where(q >= TRUST, total / tl.maximum(q, TRUST), 0.0)
            new = ratio.to(tl.float64) + pivot[:, None]
            if ENTROPY:
                new = tl.maximum(new + log_of_trusted(q, TRUST), 0.0)
            else:
                new += shift + load_row(node_values, row, k, K, active, 0.0)
            here = tl.where(active[:, None], new, here)
            store_row(mean, row, k, K, active, here)

    if tl.max(is_careful.to(tl.int32)) > 0:
        here = tl.where(is_careful[:, None], start, here)
        for t in range(1, longest):
            active = is_careful & (t < length)
            row = first_row + t
            move = edges_at + (row - first_row - 1) * step_stride
            before = load_row(log_alpha, row - 1, k, K, active, float("-inf"))
            for first in range(0, K, BJ):
                j = first + tl.arange(0, BJ)
                into_j = load_matrix(transitions, move, k, j, K, active, float("-inf"))
                w = given_after(before, into_j)
                if ENTROPY:
                    new_j = tl.sum(w * here[:, :, None] + entr(w).to(tl.float64), axis=1)
                else:
                    added = here[:, :, None]
                    if EDGE_VALUES:
                        values = load_matrix(edge_values, move, k, j, K, active, 0.0)
                        added = added + values.to(tl.float64)
                    new_j = tl.sum(tl.where(w > 0, w * added, 0.0), axis=1)
                    new_j += load_row(node_values, row, j, K, active, 0.0)
                store_row(mean, row, j, K, active, new_j)
            tl.debug_barrier()
            found = load_row(mean, row, k, K, active, 0.0)
            here = tl.where(active[:, None], found, here)

    last = last_probabilities(log_alpha, first_row + length - 1, k, K, has_step)
    overall = tl.sum(last * mean_at_end(here, last, ENTROPY), axis=1)
    tl.store(value + chain, tl.where(has_step, overall, 0.0), mask=is_chain)


@triton.jit(do_not_specialize=SIZES)
def adjoint(
    transitions,
    transposed,
    lengths,
    log_alpha,
    weights,
    incoming,
    careful,
    node_values,
    edge_values,
    values_transposed,
    mean,
    value,
    grad_value,
    grad_emissions,
    grad_nodes,
    scaled,
    over_incoming,
    weighed_means,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    TRUST: tl.constexpr,
    ENTROPY: tl.constexpr,
    EDGE_VALUES: tl.constexpr,
    RESIDENT: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
):
    """G [N, T, K], the gradient of emissions, and M [N, T, K], that of node values.

    The last three outputs are factors of the gradient of edges; careful chains have zeros there.
    """
    chain, is_chain, length = chains_of(tl.program_id(0), lengths, num_chains, BN)
    k = tl.arange(0, KP)
    is_careful = is_chain
    if RESIDENT:
        is_careful = tl.load(careful + chain, mask=is_chain, other=0) > 0
    first_row, edges_at = chain * num_steps, chain * chain_stride
    longest, has_step = tl.max(length), length > 0
    zeros = tl.zeros([BN, KP], dtype=grad_emissions.dtype.element_ty)

    last_row = first_row + length - 1
    last = last_probabilities(log_alpha, last_row, k, K, has_step)
    end = mean_at_end(load_row(mean, last_row, k, K, has_step, 0.0), last, ENTROPY)
    overall = tl.load(value + chain, mask=has_step, other=0.0)
    scale = tl.load(grad_value + chain, mask=has_step, other=0.0).to(tl.float64)
    end_mass = (last * scale[:, None]).to(zeros.dtype)
    surplus = tl.where(last > 0, end - overall[:, None], 0.0)
    end_grad = end_mass * narrowed(surplus, zeros.dtype)

    if RESIDENT:
        edge, carried, shift = load_edges_transposed(
            transposed, values_transposed, edges_at, k, K, is_chain, ENTROPY, EDGE_VALUES
        )
        grad, mass = zeros, zeros
        for back in range(0, longest):
            t = longest - 1 - back
            active = (t < length) & (is_careful == 0)
            has_before = active & (t > 0)
            row = first_row + t
            is_last = (t == length - 1)[:, None]
            grad, mass = tl.where(is_last, end_grad, grad), tl.where(is_last, end_mass, mass)
            store_row(grad_emissions, row, k, K, active, grad)
            store_row(grad_nodes, row, k, K, active, mass)
            p = load_row(weights, row - 1, k, K, has_before, 0.0)
            q = load_row(incoming, row, k, K, active, 1.0)
            mean_before = load_row(mean, row - 1, k, K, has_before, 0.0)
            weighed, pivot = weigh(p, mean_before, ENTROPY)
            into = load_row(mean, row, k, K, active, 0.0) - pivot[:, None]
            if ENTROPY:
                into -= log_of_trusted(q, TRUST)
            else:
                into -= shift + load_row(node_values, row, k, K, active, 0.0)
            trusted = (q >= TRUST) & has_before[:, None]
            m = tl.where(trusted, mass / tl.maximum(q, TRUST), 0.0)
            u = grad - mass * tl.where(trusted, narrowed(into, zeros.dtype), 0.0)
            u = tl.where(trusted, u / tl.maximum(q, TRUST), 0.0)
            store_row(scaled, row, k, K, active, u)
            store_row(over_incoming, row, k, K, active, m)
            store_row(weighed_means, row - 1, k, K, has_before, weighed)
            from_mass = tl.sum(edge * m[:, :, None], axis=1)
            from_grad = tl.sum(edge * u[:, :, None], axis=1)
            if ENTROPY or EDGE_VALUES:
                from_grad += tl.sum(carried * m[:, :, None], axis=1)
            grad = tl.where(has_before[:, None], p * from_grad + weighed * from_mass, grad)
            mass = tl.where(has_before[:, None], p * from_mass, mass)

    if tl.max(is_careful.to(tl.int32)) > 0:
        here, carried_mass = zeros, zeros
        for back in range(0, longest):
            t = longest - 1 - back
            active = is_careful & (t < length)
            has_before = active & (t > 0)
            row = first_row + t
            move = edges_at + (row - first_row - 1) * step_stride
            is_last = (t == length - 1)[:, None]
            here = tl.where(is_last, end_grad, here)
            carried_mass = tl.where(is_last, end_mass, carried_mass)
            store_row(grad_emissions, row, k, K, active, here)
            store_row(grad_nodes, row, k, K, active, carried_mass)
            store_row(scaled, row, k, K, active, zeros)
            store_row(over_incoming, row, k, K, active, zeros)
            store_row(weighed_means, row - 1, k, K, has_before, zeros)
            tl.debug_barrier()
            before = load_row(log_alpha, row - 1, k, K, has_before, float("-inf"))
            from_mean = load_row(mean, row - 1, k, K, has_before, 0.0)
            pulled, pulled_mass = zeros, zeros
            for first in range(0, K, BJ):
                j = first + tl.arange(0, BJ)
                into_j = load_matrix(transitions, move, k, j, K, has_before, float("-inf"))
                w = given_after(before, into_j)
                grad_after = load_row(grad_emissions, row, j, K, has_before, 0.0)
                mass_after = load_row(grad_nodes, row, j, K, has_before, 0.0)
                mean_j = load_row(mean, row, j, K, has_before, 0.0)
                added = from_mean[:, :, None] - mean_j[:, None, :]
                if not ENTROPY:
                    nodes = load_row(node_values, row, j, K, has_before, 0.0)
                    added += nodes[:, None, :]
                    if EDGE_VALUES:
                        values = load_matrix(edge_values, move, k, j, K, has_before, 0.0)
                        added += values.to(tl.float64)
                share = w * mass_after[:, None, :]
                moved = w * grad_after[:, None, :] + share * narrowed(added, zeros.dtype)
                if ENTROPY:
                    moved += mass_after[:, None, :] * entr(w)
                pulled += tl.sum(moved, axis=2)
                pulled_mass += tl.sum(share, axis=2)
            here = tl.where(has_before[:, None], pulled, here)
            carried_mass = tl.where(has_before[:, None], pulled_mass, carried_mass)

    store_row(weighed_means, last_row, k, K, has_step, zeros)
    fill_padding(grad_emissions, chain, k, length, num_steps, K, is_chain)
    fill_padding(grad_nodes, chain, k, length, num_steps, K, is_chain)
    fill_padding(scaled, chain, k, length, num_steps, K, is_chain)
    fill_padding(over_incoming, chain, k, length, num_steps, K, is_chain)
    fill_padding(weighed_means, chain, k, length, num_steps, K, is_chain)
