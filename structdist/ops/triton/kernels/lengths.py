"""Pieces that the kernels of semi-Markov chains share: sums over the lengths of a segment.

Of the segments that end with step t, BL are looked at together, the shortest first: those that
began 0, 1, 2, ... steps `ago`. Tiles are [BN, BL, KP]. The log weight of all that stands before
such a segment, and of its steps but for the last, is

    W(ago, k) = begins_{t-ago}(k) + steps_{t-ago}(k) + ... + steps_{t-1}(k).

The last step counts the same whatever the length, and is left out.
"""

import triton
import triton.language as tl

from structdist.ops.triton.kernels.tiles import widened, zero_if_infinite


@triton.jit
def lengths_from(first, t, num_lengths, active, BL: tl.constexpr):
    """How long ago segments of one block began [BL], and whether they may [BN, BL]."""
    ago = first + tl.arange(0, BL)
    return ago, active[:, None] & ((ago < num_lengths) & (ago <= t))[None, :]


@triton.jit
def load_before(pointer, row, ago, k, mask, other, K: tl.constexpr):
    """Numbers [BN, BL, KP] of steps before `row` [BN], where masked [BN, BL]."""
    at = (row[:, None] - ago[None, :]) * K
    inside = mask[:, :, None] & (k < K)[None, None, :]
    return tl.load(pointer + at[:, :, None] + k[None, None, :], mask=inside, other=other)


@triton.jit
def store_before(pointer, row, ago, k, mask, numbers, K: tl.constexpr):
    at = (row[:, None] - ago[None, :]) * K
    inside = mask[:, :, None] & (k < K)[None, None, :]
    tl.store(pointer + at[:, :, None] + k[None, None, :], numbers, mask=inside)


@triton.jit
def table_entries(shortest, longer, ago, k):
    """Where the entries [BN, BL, KP] of segments stand that end with one step of each chain.

    `shortest` [BN] is where that of length one stands; each that is one step longer stands by
    `longer` further on (or before).
    """
    at = shortest[:, None] + (ago.to(tl.int64) * longer)[None, :]
    return at[:, :, None] + k[None, None, :]


@triton.jit
def weigh_lengths(
    begins, steps, segments, shortest, longer, row, ago, k, possible, since, K: tl.constexpr
):
    """Log weights of segments, W alone, and the sum of the steps [BN, KP] for the next block.

    `since` [BN, KP] is that of the blocks before. What is not possible has -inf.
    """
    passed = widened(load_before(steps, row, ago, k, possible & (ago > 0)[None, :], 0.0, K))
    before = load_before(begins, row, ago, k, possible, float("-inf"), K)
    lead = before + (since[:, None, :] + tl.cumsum(passed, axis=1))
    inside = possible[:, :, None] & (k < K)[None, None, :]
    entries = segments + table_entries(shortest, longer, ago, k)
    scores = tl.load(entries, mask=inside, other=float("-inf"))
    return lead + widened(scores), lead, since + tl.sum(passed, axis=1)


@triton.jit
def sum_over_lengths(
    begins,
    steps,
    segments,
    shortest,
    longer,
    row,
    t,
    k,
    active,
    num_lengths,
    dtype: tl.constexpr,
    K: tl.constexpr,
    BL: tl.constexpr,
):
    """Log of the sum of the weights of all segments that end with a step, and the largest W.

    Exps are taken in a dtype: they are at most 1, and one of them is. -inf where nothing ends.
    """
    since = tl.zeros([row.shape[0], k.shape[0]], dtype=tl.float64)
    peak = since + float("-inf")
    largest = peak
    total = since.to(dtype)
    for first in range(0, tl.minimum(num_lengths, t + 1), BL):
        ago, possible = lengths_from(first, t, num_lengths, active, BL)
        logits, lead, since = weigh_lengths(
            begins, steps, segments, shortest, longer, row, ago, k, possible, since, K
        )
        higher = tl.maximum(peak, tl.max(logits, axis=1))
        level = zero_if_infinite(higher)
        terms = tl.exp((logits - level[:, None, :]).to(dtype))
        total = total * tl.exp((peak - level).to(dtype)) + tl.sum(terms, axis=1)
        peak = higher
        largest = tl.maximum(largest, tl.max(lead, axis=1))
    return peak + tl.log(tl.where(total > 0, total, 1.0)).to(tl.float64), largest


@triton.jit
def hand_out(shares, grad_begins, row, ago, k, possible, is_new, num_lengths, K: tl.constexpr):
    """Add shares of a gradient to what stands before segments; what all that has begun has now.

    A step gets the gradients of all segments that cover it: those that end with it, which are
    handed out here, and those that go on, which have been. `is_new` [BN] says that there are none.
    """
    met_before = possible & (is_new == 0)[:, None] & (ago < num_lengths - 1)[None, :]
    now = load_before(grad_begins, row, ago, k, met_before, 0.0, K) + shares
    store_before(grad_begins, row, ago, k, possible, now, K)
    return tl.sum(now, axis=1)


@triton.jit
def add_to_table(pointer, shortest, longer, ago, k, possible, shares, K: tl.constexpr):
    """Add shares of a gradient to the entries of segments that end with a step."""
    entries = pointer + table_entries(shortest, longer, ago, k)
    inside = possible[:, :, None] & (k < K)[None, None, :]
    so_far = tl.load(entries, mask=inside, other=0.0)
    tl.store(entries, so_far + shares, mask=inside)
