"""Choosing segments from last to first: exact draws, Gumbel-FFBS and best segmentations.

A program has BN chains of one sample; programs count chains first, then samples. Where a segment
ends its label is chosen, given the label after it, and then its length, given its label: O(K + L).
A choice is made at every step, and kept where a segment ends.
"""

import triton
import triton.language as tl

from structdist.ops.triton.kernels.backtrack import invert_cdf, logits_at, relax
from structdist.ops.triton.kernels.segment_filter import SIZES
from structdist.ops.triton.kernels.tiles import chains_of, widened


@triton.jit
def logits_of_lengths(
    begins,
    steps,
    segments,
    table,
    row,
    first_row,
    label,
    ago,
    ends_here,
    num_lengths,
    table_step_stride,
    K: tl.constexpr,
):
    """Log weights [BN, LP] of segments of a label that end at `row`, by how long ago they began."""
    step = (row - first_row)[:, None]
    possible = ends_here[:, None] & (ago < num_lengths)[None, :] & (ago[None, :] <= step)
    at = (row[:, None] - ago[None, :]) * K + label[:, None]
    passed = tl.load(steps + at, mask=possible & (ago > 0)[None, :], other=0.0)
    before = tl.load(begins + at, mask=possible, other=float("-inf"))
    entry = table[:, None] + (step - ago[None, :]) * table_step_stride + (ago * K)[None, :]
    scores = tl.load(segments + entry + label[:, None], mask=possible, other=float("-inf"))
    return before + tl.cumsum(widened(passed), axis=1) + widened(scores)


@triton.jit(do_not_specialize=[*SIZES, "sample_stride", "temperature_stride"])
def relaxed(
    ends,
    begins,
    steps,
    transitions,
    segments,
    lengths,
    noise,
    temperatures,
    soft,
    path,
    sample_stride,
    temperature_stride,
    num_lengths,
    table_stride,
    table_step_stride,
    num_chains,
    num_steps,
    chain_stride,
    step_stride,
    NOISE: tl.constexpr,
    SOFT: tl.constexpr,
    BN: tl.constexpr,
    K: tl.constexpr,
    KP: tl.constexpr,
    LP: tl.constexpr,
):
    """Softmax and argmax of prefix + move + noise: Algorithm 2 of Fu et al.; see the reference.

    Noise and the relaxation `soft` are [S, N, T, K + L]. Temperatures are float64, so far apart
    for two samples and for two chains.
    """
    programs = tl.cdiv(num_chains, BN)  # of a sample
    chain, is_chain, length = chains_of(tl.program_id(0) % programs, lengths, num_chains, BN)
    sample = (tl.program_id(0) // programs).to(tl.int64)
    k, ago = tl.arange(0, KP), tl.arange(0, LP)
    first_row, edges_at, table = chain * num_steps, chain * chain_stride, chain * table_stride
    first_draw = sample * num_chains * num_steps + first_row
    at = sample * sample_stride + chain * temperature_stride
    temperature = tl.load(temperatures + at, mask=is_chain, other=1.0)
    dtype = soft.dtype.element_ty
    label = tl.zeros([BN], dtype=tl.int64)
    ending, begin = length, length  # where the segment to be chosen ends; where the last began
    for back in range(0, num_steps):
        t = num_steps - 1 - back
        ends_here = ending == t + 1
        row = first_row + t
        choices = (first_draw + t)[:, None] * (K + num_lengths)
        labels = choices + k[None, :]
        sizes = choices + K + ago[None, :]
        is_label = (k < K)[None, :]
        is_size = (ago < num_lengths)[None, :]
        logits = logits_at(
            ends,
            transitions,
            first_row,
            edges_at,
            t,
            label,
            ends_here & (t < length - 1),
            k,
            K,
            ends_here,
            step_stride,
        )
        if NOISE:
            given = tl.load(noise + labels, mask=ends_here[:, None] & is_label, other=0.0)
            logits += given.to(tl.float64)
        label = tl.where(ends_here, tl.argmax(logits, axis=1), label).to(tl.int64)
        by_size = logits_of_lengths(
            begins,
            steps,
            segments,
            table,
            row,
            first_row,
            label,
            ago,
            ends_here,
            num_lengths,
            table_step_stride,
            K,
        )
        if NOISE:
            given = tl.load(noise + sizes, mask=ends_here[:, None] & is_size, other=0.0)
            by_size += given.to(tl.float64)
        begin = tl.where(ends_here, t - tl.argmax(by_size, axis=1), begin)
        if SOFT:
            of_label = tl.where(ends_here[:, None], relax(logits, temperature, dtype), 0.0)
            of_size = tl.where(ends_here[:, None], relax(by_size, temperature, dtype), 0.0)
            tl.store(soft + labels, of_label, mask=is_chain[:, None] & is_label)
            tl.store(soft + sizes, of_size, mask=is_chain[:, None] & is_size)
        code = tl.where(begin == t, label, label + K)
        tl.store(path + first_draw + t, tl.where(t < length, code, 0), mask=is_chain)
        ending = tl.where(begin == t, t, ending)


@triton.jit(do_not_specialize=SIZES)
def exact(
    ends,
    begins,
    steps,
    transitions,
    segments,
    lengths,
    uniform,
    path,
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
    LP: tl.constexpr,
):
    """Each label and length with its probability, by uniform float64 noise [S, N, T]."""
    programs = tl.cdiv(num_chains, BN)  # of a sample
    chain, is_chain, length = chains_of(tl.program_id(0) % programs, lengths, num_chains, BN)
    sample = (tl.program_id(0) // programs).to(tl.int64)
    k, ago = tl.arange(0, KP), tl.arange(0, LP)
    first_row, edges_at, table = chain * num_steps, chain * chain_stride, chain * table_stride
    first_draw = sample * num_chains * num_steps + first_row
    label = tl.zeros([BN], dtype=tl.int64)
    ending, begin = length, length  # where the segment to be chosen ends; where the last began
    for back in range(0, num_steps):
        t = num_steps - 1 - back
        ends_here = ending == t + 1
        row = first_row + t
        logits = logits_at(
            ends,
            transitions,
            first_row,
            edges_at,
            t,
            label,
            ends_here & (t < length - 1),
            k,
            K,
            ends_here,
            step_stride,
        )
        bound = tl.load(uniform + first_draw + t, mask=ends_here, other=0.0)
        chosen, bound = invert_cdf(logits, bound)
        label = tl.where(ends_here, chosen, label).to(tl.int64)
        by_size = logits_of_lengths(
            begins,
            steps,
            segments,
            table,
            row,
            first_row,
            label,
            ago,
            ends_here,
            num_lengths,
            table_step_stride,
            K,
        )
        chosen, _ = invert_cdf(by_size, bound)
        begin = tl.where(ends_here, t - chosen, begin)
        code = tl.where(begin == t, label, label + K)
        tl.store(path + first_draw + t, tl.where(t < length, code, 0), mask=is_chain)
        ending = tl.where(begin == t, t, ending)
