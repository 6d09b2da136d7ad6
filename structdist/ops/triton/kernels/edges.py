"""Gradients of edges, from what the sweeps back have left.

Where chains are not careful, those are sums of outer products, which are made by matrix products
beforehand; here they are weighed by the exp of the edges. What careful chains add (all of them
where sweeps are not RESIDENT) is made here, in log space. Nothing is added up by atomics, so
results do not differ from run to run.

The gradient of a move from i to j, whose conditional probability is w_ij, is w_ij G_j and, where a
mean is differentiated (MEAN is 1 for the entropy, 2 for values on nodes, 3 for values on edges too,
4 for values on edges alone),
    w_ij (G_j + M_j (F_i + V_ij - R_j)),   of edge values   w_ij M_j,
with the names of csrc/expect.cpp. The mean of what leads to a move, and that of what it leads into,
may be two tensors.
"""

import triton
import triton.language as tl

from structdist.ops.triton.kernels.tiles import (
    entr,
    given_after,
    load_matrix,
    load_row,
    narrowed,
    scaled_exp,
    value_shift,
)

FLAGS = tl.constexpr(128)  # chains that are asked at once whether one of them is careful


@triton.jit
def moves_gradient(
    transitions,
    edge_values,
    log_alpha,
    mean,
    mean_into,
    node_values,
    grad,
    mass,
    row,
    move,
    i,
    j,
    active,
    K: tl.constexpr,
    MEAN: tl.constexpr,
):
    """What the moves into step `row` [R] add, and w M [R, I, J] (or w again, without a mean)."""
    scores = load_matrix(transitions, move, i, j, K, active, float("-inf"))
    before = load_row(log_alpha, row - 1, i, K, active, float("-inf"))
    after = load_row(grad, row, j, K, active, 0.0)
    w = given_after(before, scores)
    found, of_values = w * after[:, None, :], w
    if MEAN > 0:
        mass_after = load_row(mass, row, j, K, active, 0.0)
        mean_before = load_row(mean, row - 1, i, K, active, 0.0)
        into = load_row(mean_into, row, j, K, active, 0.0)
        of_values = w * mass_after[:, None, :]
        added = mean_before[:, :, None] - into[:, None, :]
        if MEAN == 1:
            found += mass_after[:, None, :] * entr(w)
        elif MEAN < 4:
            added += load_row(node_values, row, j, K, active, 0.0)[:, None, :]
        if MEAN >= 3:
            values = load_matrix(edge_values, move, i, j, K, active, 0.0)
            added += values.to(tl.float64)
        found += of_values * narrowed(added, w.dtype)
    return found, of_values


@triton.jit(do_not_specialize=["num_each", "num_chains", "num_steps", "chain_stride"])
def shared_by_steps(
    transitions,
    edge_values,
    lengths,
    log_alpha,
    mean,
    mean_into,
    node_values,
    careful,
    grad,
    mass,
    pulls,
    masses,
    grad_edges,
    grad_values,
    num_each,
    num_chains,
    num_steps,
    chain_stride,
    MEAN: tl.constexpr,
    RESIDENT: tl.constexpr,
    R: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
):
    """Of edges [K, K] that all steps share, of so many chains each.

    Program 0 counts groups of chains, program 1 columns. `pulls` and `masses` [.., K, K] are the
    sums of outer products.
    """
    owner = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, KP), tl.program_id(1) * BJ + tl.arange(0, BJ)
    inside = (i < K)[:, None] & (j < K)[None, :]
    own = owner * K * K + i[:, None] * K + j[None, :]
    found = tl.zeros([KP, BJ], dtype=grad_edges.dtype.element_ty)
    of_values = found

    first_chain = owner * num_each
    last_chain = tl.minimum(first_chain + num_each, num_chains)
    for block in range(first_chain, last_chain, FLAGS):
        flag = block + tl.arange(0, FLAGS)
        flags = tl.load(careful + flag, mask=flag < last_chain, other=0)
        if (not RESIDENT) | (tl.max(flags) > 0):
            for n in range(block, tl.minimum(block + FLAGS, last_chain)):
                if (not RESIDENT) | (tl.load(careful + n) > 0):
                    length = tl.load(lengths + n).to(tl.int32)
                    for first in range(1, length, R):
                        t = first + tl.arange(0, R)
                        row = (t + tl.zeros([R], dtype=tl.int64)) + n * num_steps
                        added, mass_added = moves_gradient(
                            transitions,
                            edge_values,
                            log_alpha,
                            mean,
                            mean_into,
                            node_values,
                            grad,
                            mass,
                            row,
                            row * 0 + owner * chain_stride,
                            i,
                            j,
                            t < length,
                            K,
                            MEAN,
                        )
                        found += tl.sum(added, axis=0)
                        if MEAN > 0:
                            of_values += tl.sum(mass_added, axis=0)

    if RESIDENT:
        edges_at = tl.zeros([1], dtype=tl.int64) + owner * chain_stride
        yes = edges_at >= 0
        scores = load_matrix(transitions, edges_at, i, j, K, yes, float("-inf"))
        edge, _ = scaled_exp(scores)
        weight = tl.sum(edge, axis=0)  # [KP, BJ]
        found += weight * tl.load(pulls + own, mask=inside, other=0.0)
        if MEAN > 0:
            product = tl.load(masses + own, mask=inside, other=0.0)
            of_values += weight * product
            if MEAN == 1:
                found += entr(weight) * product
            if MEAN >= 3:
                values = load_matrix(edge_values, edges_at, i, j, K, yes, 0.0)
                shifted = narrowed(values - value_shift(scores, values)[:, None, :], edge.dtype)
                found += tl.sum(tl.where(edge > 0, edge * shifted, 0.0), axis=0) * product
    tl.store(grad_edges + own, found, mask=inside)
    if MEAN > 0:
        tl.store(grad_values + own, of_values, mask=inside)


@triton.jit(do_not_specialize=["num_moves", "num_steps"])
def of_one_step(
    transitions,
    edge_values,
    lengths,
    log_alpha,
    mean,
    mean_into,
    node_values,
    grad,
    mass,
    grad_edges,
    grad_values,
    num_moves,
    num_steps,
    MEAN: tl.constexpr,
    R: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    BJ: tl.constexpr,
):
    """Of edges [N, T-1, K, K] that nothing shares, all in log space; R moves a program."""
    move = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    i, j = tl.arange(0, KP), tl.program_id(1) * BJ + tl.arange(0, BJ)
    is_move = move < num_moves
    chain = move // (num_steps - 1)
    t = move - chain * (num_steps - 1) + 1
    length = tl.load(lengths + chain, mask=is_move, other=0)
    offset = move * K * K
    found, of_values = moves_gradient(
        transitions,
        edge_values,
        log_alpha,
        mean,
        mean_into,
        node_values,
        grad,
        mass,
        chain * num_steps + t,
        offset,
        i,
        j,
        is_move & (t < length),
        K,
        MEAN,
    )
    at = offset[:, None, None] + (i[:, None] * K + j[None, :])[None, :, :]
    inside = (i < K)[:, None] & (j < K)[None, :]
    mask = is_move[:, None, None] & inside[None, :, :]
    tl.store(grad_edges + at, found, mask=mask)
    if MEAN > 0:
        tl.store(grad_values + at, of_values, mask=mask)
