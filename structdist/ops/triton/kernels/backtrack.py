"""Choosing a path from its last state to its first: exact draws, Gumbel-FFBS and best paths.

A program has BN chains of one sample; programs count chains first, then samples. Each step costs
O(K): one column of the edges is read.
"""

import triton
import triton.language as tl

from structdist.ops.triton.kernels.tiles import (
    chains_of,
    load_row,
    store_row,
    widened,
    zero_if_infinite,
)

SIZES = ["num_chains", "num_steps", "chain_stride", "step_stride"]


@triton.jit
def logits_at(
    prefix,
    transitions,
    first_row,
    edges_at,
    t,
    after,
    follows,
    k,
    K: tl.constexpr,
    active,
    step_stride,
):
    """Log weights [BN, KP] of each state at step t, given the state `after` it [BN]."""
    row = first_row + t
    logits = load_row(prefix, row, k, K, active, float("-inf"))
    move = edges_at + (row - first_row) * step_stride
    mask = follows[:, None] & (k < K)[None, :]
    column = move[:, None] + k[None, :] * K + after[:, None]
    scores = tl.load(transitions + column, mask=mask, other=0.0)
    return logits + widened(scores)


@triton.jit
def relax(logits, temperature, dtype: tl.constexpr):
    """The softmax of logits over temperatures [BN]; 0 where all of them are -inf."""
    apart = (logits - zero_if_infinite(tl.max(logits, axis=1))[:, None]) / temperature[:, None]
    terms = tl.exp(apart.to(dtype))
    total = tl.sum(terms, axis=1)
    return terms / tl.where(total > 0, total, 1.0)[:, None]


@triton.jit
def invert_cdf(logits, uniform):
    """The first choice whose cumulative probability exceeds `uniform` [BN], else the last.

    It is never an impossible one, however sums are rounded. What is left of a uniform number once
    it has chosen is uniform again.
    """
    terms = tl.exp(logits - zero_if_infinite(tl.max(logits, axis=1))[:, None])
    cumulative = tl.cumsum(terms, axis=1)
    bound = uniform * tl.max(cumulative, axis=1)
    choice = tl.arange(0, logits.shape[1])[None, :]
    possible = terms > 0
    last = tl.max(tl.where(possible, choice, 0), axis=1)
    exceeds = possible & (cumulative > bound[:, None])
    chosen = tl.min(tl.where(exceeds, choice, last[:, None]), axis=1)
    is_chosen = choice == chosen[:, None]
    share = tl.sum(tl.where(is_chosen, terms, 0.0), axis=1)
    up_to = tl.sum(tl.where(is_chosen, cumulative, 0.0), axis=1)
    left = (bound - up_to + share) / tl.where(share > 0, share, 1.0)
    return chosen, tl.minimum(tl.maximum(left, 0.0), 1.0)


@triton.jit(do_not_specialize=[*SIZES, "sample_stride", "temperature_stride"])
def relaxed(
    prefix,
    transitions,
    lengths,
    noise,
    temperatures,
    soft,
    path,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    sample_stride,
    temperature_stride,
    NOISE: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
):
    """Softmax and argmax of prefix + move + noise: Algorithm 2 of Fu et al.; see the reference.

    Temperatures are float64, so far apart for two samples and for two chains.
    """
    programs = tl.cdiv(num_chains, BN)  # of a sample
    chain, is_chain, length = chains_of(tl.program_id(0) % programs, lengths, num_chains, BN)
    sample = (tl.program_id(0) // programs).to(tl.int64)
    k = tl.arange(0, KP)
    first_row, edges_at = chain * num_steps, chain * chain_stride
    first_draw = sample * num_chains * num_steps + first_row
    at = sample * sample_stride + chain * temperature_stride
    temperature = tl.load(temperatures + at, mask=is_chain, other=1.0)
    dtype = soft.dtype.element_ty
    after = tl.zeros([BN], dtype=tl.int64)
    for back in range(0, num_steps):
        t = num_steps - 1 - back
        active, follows = t < length, t < length - 1
        row = first_draw + t
        logits = logits_at(
            prefix,
            transitions,
            first_row,
            edges_at,
            t,
            after,
            follows,
            k,
            K,
            active,
            step_stride,
        )
        if NOISE:
            given = load_row(noise, row, k, K, active, 0.0)
            logits += given.to(tl.float64)
        after = tl.where(active, tl.argmax(logits, axis=1), 0).to(tl.int64)
        share = tl.where(active[:, None], relax(logits, temperature, dtype), 0.0)
        store_row(soft, row, k, K, is_chain, share)
        tl.store(path + row, after, mask=is_chain)


@triton.jit(do_not_specialize=SIZES)
def exact(
    prefix,
    transitions,
    lengths,
    uniform,
    path,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
):
    """Each state with its probability, by uniform float64 noise [S, N, T]."""
    programs = tl.cdiv(num_chains, BN)  # of a sample
    chain, is_chain, length = chains_of(tl.program_id(0) % programs, lengths, num_chains, BN)
    sample = (tl.program_id(0) // programs).to(tl.int64)
    k = tl.arange(0, KP)
    first_row, edges_at = chain * num_steps, chain * chain_stride
    first_draw = sample * num_chains * num_steps + first_row
    after = tl.zeros([BN], dtype=tl.int64)
    for back in range(0, num_steps):
        t = num_steps - 1 - back
        active, follows = t < length, t < length - 1
        row = first_draw + t
        logits = logits_at(
            prefix,
            transitions,
            first_row,
            edges_at,
            t,
            after,
            follows,
            k,
            K,
            active,
            step_stride,
        )
        bound = tl.load(uniform + row, mask=active, other=0.0)
        chosen, _ = invert_cdf(logits, bound)
        after = tl.where(active, chosen, 0).to(tl.int64)
        tl.store(path + row, after, mask=is_chain)
