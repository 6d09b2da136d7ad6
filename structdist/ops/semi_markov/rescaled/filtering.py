"""The forward pass, its adjoint, and marginals."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from structdist.ops.chain import full_precision
from structdist.ops.finite import rounded
from structdist.ops.problem import Grads, Needs
from structdist.ops.semi_markov.backtrack import Prefixes
from structdist.ops.semi_markov.problem import (
    FIRST_STEPS,
    SemiMarkovChain,
    ending_at,
    without_padding,
)
from structdist.ops.semi_markov.rescaled.moves import Moves, MovesBack, label_shares, underflows
from structdist.ops.semi_markov.rescaled.state import Filtered, at_last_step, at_step, prefixes_of
from structdist.ops.semi_markov.rescaled.sweep import SegmentGrads, Swept, sweep_back


@torch.no_grad()
def filter(chain: SemiMarkovChain) -> tuple[Filtered, None]:
    """The forward pass. O(N T (K^2 + L K)) time, O(N (T + L) K) memory.

    Whether a chain has no path is not said: that would be one more wait for the device.
    """
    chain = without_padding(chain)
    with full_precision(chain.emissions.device):
        filtered = _filter(chain, careful=False)
        if bool(underflows(chain, filtered).any()):
            filtered = _filter(chain, careful=True)
    return filtered, None


def _filter(chain: SemiMarkovChain, careful: bool) -> Filtered:
    emissions, transitions, segments, lengths = chain
    moves, dtype, num_steps = Moves(transitions), emissions.dtype, emissions.shape[1]
    begins = emissions.new_zeros(emissions.shape, dtype=torch.float64)
    ends, norms = torch.zeros_like(begins), torch.zeros_like(begins[..., 0])
    weights, incoming = torch.zeros_like(emissions), torch.ones_like(emissions)
    unfinished = begins[:, :0]  # [N, l, K]
    for t in range(num_steps):
        kept = unfinished[:, max(t + 1 - chain.longest, 0) - t + unfinished.shape[1] :]
        unfinished = torch.cat([kept, begins[:, t, None]], 1) + emissions[:, t, None]
        norm = unfinished.amax((1, 2))
        norms[:, t] = torch.where(norm.isinf(), 0.0, norm)
        unfinished = unfinished - norms[:, t, None, None]
        ends[:, t] = _log_sum(unfinished + ending_at(segments, t + 1), dtype)
        if t + 1 < num_steps:
            p, q, begins[:, t + 1] = moves.forward(ends[:, t], t, careful)
            weights[:, t], incoming[:, t + 1] = p, q
    log_norm = norms.cumsum(1).unsqueeze(-1)
    log_z = torch.logsumexp(at_step(ends, lengths - 1), -1)
    log_z = log_z + at_step(log_norm, lengths - 1).squeeze(-1)
    return Filtered(ends, begins, norms, weights, incoming, torch.where(lengths > 0, log_z, 0.0))


def _log_sum(log_weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Over dimension 1, with exps in a dtype: they are at most 1, and one of them is."""
    peak = log_weight.amax(1)
    peak = torch.where(peak.isinf(), 0.0, peak)
    return (log_weight - peak.unsqueeze(1)).to(dtype).exp().sum(1).log().double() + peak


def log_partition(chain: SemiMarkovChain, filtered: Filtered, dtype: torch.dtype) -> Tensor:
    """[N], in float64 or rounded."""
    log_z = filtered.log_z
    return log_z.clone() if dtype == torch.float64 else rounded(log_z, dtype)


def log_partition_adjoint(
    chain: SemiMarkovChain, filtered: Filtered, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of log Z [N]. O(N T (K^2 + L K))."""
    upstream = at_last_step(filtered, chain.lengths, grad)
    return filter_adjoint(chain, filtered, upstream, needs)[:3]


def filter_adjoint(
    chain: SemiMarkovChain,
    filtered: Filtered,
    upstream: Tensor,
    needs: Needs,
    more_at: Callable[[int], Tensor] | None = None,
) -> Swept:
    """Gradients of scores from that of `ends` [N, T, K] and, if any, of single segments."""
    chain = without_padding(chain)
    segments = SegmentGrads(chain.segments) if needs[2] else None
    with full_precision(chain.emissions.device):
        return _sweep(chain, filtered, upstream, needs[1], segments, more_at)


def _sweep(
    chain: SemiMarkovChain,
    filtered: Filtered,
    upstream: Tensor,
    with_moves: bool,
    segments: SegmentGrads | None,
    more_at: Callable[[int], Tensor] | None = None,
) -> Swept:
    prefixes, dtype = prefixes_of(chain, filtered), chain.emissions.dtype
    moves = MovesBack(chain, filtered, with_moves)
    shares_at = _shares(prefixes, dtype)
    return sweep_back(upstream.to(dtype).clone(), shares_at, moves, segments, more_at)


def _shares(prefixes: Prefixes, dtype: torch.dtype) -> Callable[[int], Tensor]:
    """Probabilities [N, l, K] of the first step of a segment, given its last step and label."""

    def shares_at(t: int) -> Tensor:
        logits = prefixes.by_first_step(t)
        peak = logits.amax(1, keepdim=True)
        weight = (logits - torch.where(peak.isinf(), 0.0, peak)).to(dtype).exp()
        total = weight.sum(1, keepdim=True)
        return weight / torch.where(total == 0, 1.0, total)

    return shares_at


def marginals(chain: SemiMarkovChain, filtered: Filtered, part: int) -> Tensor:
    """Of labels, moves, segments or first steps; see the reference."""
    chain = without_padding(chain)
    upstream = at_last_step(filtered, chain.lengths, torch.ones_like(filtered.log_z))
    segments = None
    if part == 2:
        segments = SegmentGrads(chain.emissions.new_zeros(()).expand(chain.shape_of_part(part)))
    with full_precision(chain.emissions.device):
        swept = _sweep(chain, filtered, upstream, False, segments)
    if part == 1:
        return edge_marginals(chain, filtered, swept.begins)
    found = swept.begins if part == FIRST_STEPS else swept.emissions
    found = found if swept.segments is None else swept.segments
    return found.clamp_(max=1)  # not a rounding error more


def edge_marginals(chain: SemiMarkovChain, filtered: Filtered, begins: Tensor) -> Tensor:
    """[N, T-1, K, K], from the marginals of first steps: P(i given j after it) times P(j)."""
    chain = without_padding(chain)
    num_chains, num_steps, num_labels = begins.shape
    found = begins.new_zeros(num_chains, num_steps - 1, num_labels, num_labels)
    for t in range(num_steps - 1):
        found[:, t] = label_shares(chain, filtered, t) * begins[:, t + 1, None].clamp(max=1)
    return found
