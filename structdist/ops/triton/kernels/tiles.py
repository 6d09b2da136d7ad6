"""Pieces that all kernels share: rows of states, matrices of edges, and sums in log space.

A program has BN chains (one on a GPU) and all their K states, padded to KP. Names of tiles: rows
are [BN, KP], matrices [BN, KP, KP] or, in log space, [BN, KP, BJ], from state i to state j. What
lies beyond a chain, or beyond its states, is never read.
"""

import triton
import triton.language as tl


@triton.jit
def chains_of(program, lengths, num_chains, BN: tl.constexpr):
    """The chains of a program [BN], whether there are so many, and their lengths."""
    chain = (program * BN + tl.arange(0, BN)).to(tl.int64)
    is_chain = chain < num_chains
    return chain, is_chain, tl.load(lengths + chain, mask=is_chain, other=0).to(tl.int32)


@triton.jit
def widened(scores):
    """Scores in float64 whose sums stay finite; -inf stays, and forbids."""
    if scores.dtype == tl.float64:
        within = tl.minimum(tl.maximum(scores, -1e300), 1e300)
        return tl.where((tl.abs(scores) == float("inf")) | (scores != scores), scores, within)
    else:
        return scores.to(tl.float64)


@triton.jit
def zero_if_infinite(x):
    return tl.where(x == float("-inf"), 0.0, x)


@triton.jit
def load_row(pointer, row, k, K: tl.constexpr, active, other):
    """Numbers [BN, KP] of one step of each chain; `row` [BN] counts the steps of all chains."""
    mask = active[:, None] & (k < K)[None, :]
    return tl.load(pointer + row[:, None] * K + k[None, :], mask=mask, other=other)


@triton.jit
def store_row(pointer, row, k, K: tl.constexpr, active, numbers):
    mask = active[:, None] & (k < K)[None, :]
    tl.store(pointer + row[:, None] * K + k[None, :], numbers, mask=mask)


@triton.jit
def load_matrix(pointer, offset, i, j, K: tl.constexpr, active, other):
    """Entries [BN, I, J] of each chain's matrix, which begins at `offset` [BN]."""
    at = offset[:, None, None] + (i[:, None] * K + j[None, :])[None, :, :]
    inside = (i < K)[:, None] & (j < K)[None, :]
    mask = active[:, None, None] & inside[None, :, :]
    return tl.load(pointer + at, mask=mask, other=other)


@triton.jit
def transpose(matrix, transposed, offset, k, active, K: tl.constexpr, BJ: tl.constexpr):
    """Copy each chain's matrix, which begins at `offset` [BN], with its dimensions exchanged."""
    for first in range(0, K, BJ):
        j = first + tl.arange(0, BJ)
        columns = load_matrix(matrix, offset, k, j, K, active, 0.0)
        at = offset[:, None, None] + (k[:, None] + j[None, :] * K)[None, :, :]
        inside = (k < K)[:, None] & (j < K)[None, :]
        tl.store(transposed + at, columns, mask=active[:, None, None] & inside[None, :, :])


@triton.jit
def scaled_exp(scores):
    """Exp of edges, each column scaled to have 1 as its largest entry, and what was taken off."""
    peak = zero_if_infinite(tl.max(scores, axis=1))  # [BN, J]
    return tl.exp(scores - peak[:, None, :]), peak


@triton.jit
def scaled_exp_transposed(scores):
    """The same of a matrix whose rows are states after a move, [BN, J, I]."""
    return tl.exp(scores - zero_if_infinite(tl.max(scores, axis=2))[:, :, None])


@triton.jit
def moves_into(before, scores):
    """Sums over i of exp(before_i + score_ij), the careful way.

    Gives the peak of each sum and the sum itself divided by exp(peak), both [BN, J], and its terms
    [BN, I, J]. The peak is -inf where nothing leads to j.
    """
    logits = before[:, :, None] + widened(scores)
    peak = tl.max(logits, axis=1)
    terms = tl.exp((logits - zero_if_infinite(peak)[:, None, :]).to(scores.dtype))
    return peak, tl.sum(terms, axis=1), terms


@triton.jit
def given_after(before, scores):
    """Probabilities [BN, I, J] of each state i before, given j after it; 0 if j is unreachable."""
    _, total, terms = moves_into(before, scores)
    return terms / tl.where(total > 0, total, 1.0)[:, None, :]


@triton.jit
def fill_padding(pointer, chain, k, length, num_steps, K: tl.constexpr, is_chain):
    """Zeros in every row beyond the length of its chain."""
    shortest = tl.min(tl.where(is_chain, length, num_steps))
    zeros = tl.zeros([chain.shape[0], k.shape[0]], dtype=pointer.dtype.element_ty)
    for t in range(shortest, num_steps):
        store_row(pointer, chain * num_steps + t, k, K, is_chain & (t >= length), zeros)


@triton.jit
def narrowed(x, dtype: tl.constexpr):
    """Rounded to a dtype, so far from overflow that a sum of a million of them is finite too."""
    if dtype == tl.float32:
        return tl.minimum(tl.maximum(x, -3.2e32), 3.2e32).to(dtype)
    else:
        return tl.minimum(tl.maximum(x, -1.7e302), 1.7e302).to(dtype)


@triton.jit
def rounded(x, dtype: tl.constexpr):
    """Rounded to a dtype, finite where it was."""
    if dtype == tl.float32:
        within = tl.minimum(tl.maximum(x, -3.4028234663852886e38), 3.4028234663852886e38)
        return tl.where((tl.abs(x) == float("inf")) | (x != x), x, within).to(dtype)
    else:
        return x


@triton.jit
def entr(p):
    """-p log p, and 0 where p is 0."""
    return -p * tl.log(tl.where(p > 0, p, 1.0))


@triton.jit
def value_shift(scores, values):
    """[BN, J]: the value beside the largest score of each column."""
    best = tl.argmax(scores, axis=1)
    is_best = tl.arange(0, scores.shape[1])[None, :, None] == best[:, None, :]
    return tl.sum(tl.where(is_best, values, 0.0), axis=1)


@triton.jit
def last_probabilities(log_alpha, last_row, k, K: tl.constexpr, has_step):
    """Of the last state of each chain [BN, KP] float64; 0 where there is none."""
    last = load_row(log_alpha, last_row, k, K, has_step, float("-inf"))
    last = tl.exp(last - zero_if_infinite(tl.max(last, axis=1))[:, None])
    total = tl.sum(last, axis=1)
    return last / tl.where(total > 0, total, 1.0)[:, None]
