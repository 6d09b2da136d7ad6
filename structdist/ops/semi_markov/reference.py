"""The textbook recurrences of semi-Markov chains, one step at a time.

With `ends_t(k)` the weight of all that ends before step t with a segment of label k, and
`begins_t(k)` that of all that may stand before a segment of label k from step t on,

    ends_t(k)   = sum over lengths l of  begins_{t-l}(k) * weight of the segment (t-l, l, k)
    begins_t(k) = sum over labels i of   ends_t(i) * weight of moving from i to k

so that lengths and labels are summed one after the other: O(T (K^2 + L K)). The score of a segment
is grown step by step, never taken as a difference of sums over the chain, which would lose digits.

Everything here is plain: each function is differentiable by autograd to any order, and is what the
fast kernels are tested against. Enumeration is in turn what this file is tested against.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import in_chain
from structdist.ops.edges import edges_at, edges_into
from structdist.ops.problem import Best, Draw, Temperature, Values
from structdist.ops.semi_markov.backtrack import (
    Prefixes,
    best_backtrack,
    relaxed_backtrack,
    sampling_backtrack,
)
from structdist.ops.semi_markov.k_best import k_best
from structdist.ops.semi_markov.problem import SemiMarkovChain, ending_at, without_padding
from structdist.semirings import (
    Element,
    EntropySemiring,
    ExpectationSemiring,
    LogSemiring,
    MaxSemiring,
    Semiring,
    softmax,
    times,
)

__all__ = [
    "entropy",
    "enumerate_segmentations",
    "expectation",
    "gumbel_ffbs",
    "k_best",
    "log_partition",
    "marginals",
    "path_scores",
    "relaxed_viterbi",
    "sample_paths",
    "viterbi",
]


class Scan(NamedTuple):
    """What all prefixes come to, boundary by boundary, and all paths together."""

    begins: list[Element]  # T of them, each [N, K]: before a segment from step t on
    ends: list[Element]  # T of them, each [N, K]: with a segment whose last step is t
    lead: list[Element]  # T of them, each [N, l, K]: `begins` and the steps up to t, by first step
    total: Element  # each [N]


def scan(
    semiring: Semiring, nodes: Element, edges: Element, segments: Element, lengths: Tensor
) -> Scan:
    """Pool all segmentations from left to right. Arguments have the forms of `SemiMarkovChain`."""
    num_steps, longest = nodes[0].shape[1], segments[0].shape[-2]
    begins: list[Element] = [tuple(torch.zeros_like(node[:, 0]) for node in nodes)]
    ends: list[Element] = []
    leads: list[Element] = []
    unfinished: list[Element] = []  # by first step: what came before, and the steps since
    for t in range(num_steps):
        unfinished = [*unfinished, begins[t]][-longest:]
        unfinished = [times(x, tuple(node[:, t] for node in nodes)) for x in unfinished]
        lead = tuple(torch.stack(parts, 1) for parts in zip(*unfinished, strict=True))
        ends.append(semiring.add(times(lead, tuple(ending_at(s, t + 1) for s in segments)), dim=1))
        leads.append(lead)
        if t + 1 < num_steps:
            edge = tuple(edges_at(e, t) for e in edges)
            before = tuple(x.unsqueeze(-1) for x in ends[t])
            begins.append(semiring.add(times(before, edge), dim=-2))
    last = (lengths - 1).clamp(min=0)
    total = semiring.add(tuple(_at(torch.stack(x, 1), last) for x in zip(*ends, strict=True)), -1)
    return Scan(begins, ends, leads, tuple(torch.where(lengths > 0, x, 0.0) for x in total))


def _at(steps: Tensor, t: Tensor) -> Tensor:
    """[N, K]: of [N, T, K], the entries at one step [N] of each chain."""
    index = t[:, None, None].expand(-1, 1, steps.shape[-1])
    return steps.gather(1, index).squeeze(1)


def log_partition(chain: SemiMarkovChain) -> Tensor:
    """[N]: log of the sum over all segmentations of exp(score). O(N T (K^2 + L K))."""
    emissions, transitions, segments, lengths = without_padding(chain)
    return scan(LogSemiring(), (emissions,), (transitions,), (segments,), lengths).total[0]


def entropy(chain: SemiMarkovChain) -> Tensor:
    """[N]: the entropy of the segmentation. O(N T (K^2 + L K))."""
    *scores, lengths = without_padding(chain)
    parts = [(x, torch.zeros_like(x)) for x in scores]
    return scan(EntropySemiring(), parts[0], parts[1], parts[2], lengths).total[1]


def expectation(chain: SemiMarkovChain, values: Values) -> Tensor:
    """[N]: E of the sum of values on steps, moves and segments (of any form)."""
    chain, given = chain.with_values(values)
    *scores, lengths = without_padding(chain)
    *carried, _ = without_padding(chain.with_scores(given))
    parts = list(zip(scores, carried, strict=True))
    return scan(ExpectationSemiring(), parts[0], parts[1], parts[2], lengths).total[1]


def marginals(chain: SemiMarkovChain, part: int) -> Tensor:
    """Of each label at each step [N, T, K] (part 0), move [N, T-1, K, K] (1), or segment (2).

    The last is [N, T, L, K], by first step, length and label; or [N, T, K], whatever its length
    (`FIRST_STEPS`).
    """
    return _smooth(chain)[part]


def _smooth(chain: SemiMarkovChain) -> tuple[Tensor, ...]:
    """Marginals of steps, moves, segments and first steps, from last to first, 0 in the padding.

    Given where a segment ends, and its label, its length has the probabilities of a softmax; given
    the label after it, so has its label.
    """
    emissions, transitions, segments, lengths = without_padding(chain)
    num_chains, num_steps, num_labels = emissions.shape
    found = scan(LogSemiring(), (emissions,), (transitions,), (segments,), lengths)
    nothing = emissions.new_zeros(num_chains, num_labels)
    first = [nothing] * num_steps  # of beginning at a step
    steps = [nothing] * num_steps
    by_size = [[nothing] * chain.longest for _ in range(num_steps)]
    moves = [found.ends[0][0][:, :0, None, None].expand(-1, -1, num_labels, num_labels)]
    for t in reversed(range(num_steps)):
        is_last = (lengths == t + 1)[:, None]
        mass = torch.where(is_last, softmax(found.ends[t][0], -1), 0.0)
        if t + 1 < num_steps:
            before = softmax(found.ends[t][0].unsqueeze(-1) + edges_at(transitions, t), -2)
            moves.append((before * first[t + 1].unsqueeze(-2)).unsqueeze(1))
            mass = mass + moves[-1].sum(-1).squeeze(1)
        share = softmax(found.lead[t][0] + ending_at(segments, t + 1), 1) * mass.unsqueeze(1)
        covered = share.cumsum(1)  # by all that have begun so far
        begin = t + 1 - share.shape[1]
        for n in range(share.shape[1]):
            first[begin + n] = first[begin + n] + share[:, n]
            steps[begin + n] = steps[begin + n] + covered[:, n]
            by_size[begin + n][t - begin - n] = share[:, n]
    by_first = [torch.stack(sizes, 1) for sizes in by_size]
    edges = torch.cat(moves[:1] + moves[:0:-1], 1)
    return torch.stack(steps, 1), edges, torch.stack(by_first, 1), torch.stack(first, 1)


def _prefixes(chain: SemiMarkovChain, semiring: Semiring) -> tuple[Prefixes, Tensor]:
    """What back-tracking looks at, and the total [N]."""
    emissions, transitions, segments, lengths = without_padding(chain)
    found = scan(semiring, (emissions,), (transitions,), (segments,), lengths)
    ends, begins = (torch.stack([x[0] for x in steps], 1) for steps in (found.ends, found.begins))
    return Prefixes(ends, begins, emissions, transitions, segments, lengths), found.total[0]


def gumbel_ffbs(chain: SemiMarkovChain, gumbel: Tensor, temperature: Temperature) -> Draw:
    """Exact draws by Gumbel noise [S, N, T, K + L], with their relaxation."""
    return relaxed_backtrack(_prefixes(chain, LogSemiring())[0], gumbel, temperature)


def relaxed_viterbi(chain: SemiMarkovChain, temperature: Temperature) -> Draw:
    """The best segmentation (S = 1) with relaxed back-tracking."""
    return best_backtrack(_prefixes(chain, MaxSemiring())[0], temperature)


def viterbi(chain: SemiMarkovChain) -> Best:
    """The best segmentation. O(N T (K^2 + L K))."""
    prefixes, score = _prefixes(chain, MaxSemiring())
    return Best(best_backtrack(prefixes, 1.0).path[0], score)


def sample_paths(chain: SemiMarkovChain, uniform: Tensor) -> Tensor:
    """[S, N, T]: exact draws by inverting the distribution function at `uniform` [S, N, T]."""
    return sampling_backtrack(_prefixes(chain, LogSemiring())[0], uniform)


def path_scores(chain: SemiMarkovChain, paths: Tensor) -> Tensor:
    """[S, N]: of each path [S, N, T]; 0 for an empty chain, -inf for what is no segmentation."""
    emissions, transitions, segments, lengths = without_padding(chain)
    num_chains, num_steps, num_labels = emissions.shape
    active = in_chain(lengths, num_steps)
    chains = torch.arange(num_chains, device=paths.device)
    score = emissions.new_zeros(paths.shape[:2])
    possible = torch.ones_like(score, dtype=torch.bool)
    label = size = torch.zeros_like(paths[..., 0])  # of the segment so far
    for t in range(num_steps):
        code, here = paths[..., t], paths[..., t] % num_labels
        begins = code < num_labels
        known = (code >= 0) & (code < 2 * num_labels)
        goes_on = (size > 0) & (here == label) & (size < chain.longest)
        possible = possible & ((known & (begins | goes_on)) | ~active[:, t])
        score = score + torch.where(active[:, t], emissions[chains, t, here], 0.0)
        if t > 0:
            closed = _closing(segments, label, size, t)
            moves = edges_into(transitions, t - 1, here).gather(-1, label[..., None]).squeeze(-1)
            score = score + torch.where(active[:, t] & begins, closed + moves, 0.0)
        label = torch.where(active[:, t], here, label)
        size = torch.where(active[:, t], torch.where(begins, 1, size + 1), size)
    score = score + torch.where(lengths > 0, _closing(segments, label, size, lengths), 0.0)
    return torch.where(possible, score, -torch.inf)


def _closing(segments: Tensor, label: Tensor, size: Tensor, end: Tensor | int) -> Tensor:
    """[S, N]: the scores of segments of a label [S, N] and size [S, N] that end before a step."""
    size = size.clamp(1, segments.shape[-2])
    chains = torch.arange(size.shape[-1], device=size.device)
    if segments.dim() == 2:
        return segments[size - 1, label]
    if segments.dim() == 3:
        return segments[chains, size - 1, label]
    return segments[chains, (end - size).clamp(min=0), size - 1, label]


def enumerate_segmentations(
    num_steps: int, longest: int, num_labels: int, device: torch.device | None = None
) -> Tensor:
    """[P, T]: every segmentation of T steps, as paths."""
    found = [torch.zeros(1, 0, dtype=torch.long, device=device)]  # by the number of steps
    for end in range(1, num_steps + 1):
        pieces = []
        for size in range(1, min(longest, end) + 1):
            before = found[end - size]
            first = torch.arange(num_labels, device=device)[:, None]
            piece = torch.cat([first, (first + num_labels).expand(-1, size - 1)], 1)
            lead = before.repeat_interleave(num_labels, 0)
            pieces.append(torch.cat([lead, piece.repeat(len(before), 1)], 1))
        found.append(torch.cat(pieces))
    return found[num_steps]
