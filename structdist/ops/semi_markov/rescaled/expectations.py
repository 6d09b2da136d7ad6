"""Expectations, entropies, and their adjoint.

`means` of what ends with a step, or may stand before one, are conditional: given that it does. With
w the probability of a choice (a first step, or the label before) given what it leads to, and f what
the choice brings along (the mean before it and its own value, or in an entropy -log w),

    mean = sum w f,        gradient of the logit of a choice = w (gradient of the log weight
                                                               + gradient of the mean * (f - mean)).
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import full_precision
from structdist.ops.edges import edges_at, sum_to_form
from structdist.ops.problem import Expected, Grads, Needs, Values
from structdist.ops.semi_markov.problem import SemiMarkovChain, ending_at, without_padding
from structdist.ops.semi_markov.rescaled.moves import add_edges, label_shares
from structdist.ops.semi_markov.rescaled.state import Filtered, at_step, prefixes_of
from structdist.ops.semi_markov.rescaled.sweep import SegmentGrads
from structdist.semirings import softmax


def entropy(chain: SemiMarkovChain, filtered: Filtered) -> Expected:
    """In nats, from the conditional entropies of all choices. O(N T (K^2 + L K))."""
    with full_precision(chain.emissions.device):
        return _Means(without_padding(chain), filtered).expect()


def entropy_adjoint(
    chain: SemiMarkovChain, filtered: Filtered, expected: Expected, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of the entropy [N]. O(N T (K^2 + L K))."""
    with full_precision(chain.emissions.device):
        means = _Means(without_padding(chain), filtered)
        return _Adjoint(means, expected, (*needs, False, False, False)).run(grad)[:3]


def expectation(chain: SemiMarkovChain, filtered: Filtered, values: Values) -> Expected:
    """Of values on steps, moves and segments (of any form). O(N T (K^2 + L K))."""
    with full_precision(chain.emissions.device):
        return _means_of(chain, filtered, values).expect()


def expectation_adjoint(
    chain: SemiMarkovChain,
    filtered: Filtered,
    values: Values,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients of scores and values from that of the expectation [N]."""
    with full_precision(chain.emissions.device):
        means = _means_of(chain, filtered, values)
        grads = _Adjoint(means, expected, needs).run(grad)
    inputs = (*chain.scores, *values)
    found = [g if need else None for g, need in zip(grads, needs, strict=True)]
    for place in (1, 2, 4, 5):
        given, own = found[place], inputs[place]
        found[place] = None if given is None or own is None else sum_to_form(given, own)
    return found


def _means_of(chain: SemiMarkovChain, filtered: Filtered, values: Values) -> _Means:
    wide, given = chain.with_values(values)
    *carried, _ = without_padding(wide.with_scores([x.double() for x in given]))
    return _Means(without_padding(wide), filtered, carried)


class _Means:
    """Conditional means of values or, without values, conditional entropies."""

    def __init__(
        self, chain: SemiMarkovChain, filtered: Filtered, values: list[Tensor] | None = None
    ) -> None:
        self.chain, self.filtered, self.values = chain, filtered, values
        self.prefixes = prefixes_of(chain, filtered)
        self.last = softmax(at_step(filtered.ends, chain.lengths - 1), -1)  # [N, K]

    def expect(self) -> Expected:
        """The value [N], and the means [2, N, T, K] of what ends with and begins at each step."""
        means = torch.zeros_like(self.filtered.ends).expand(2, -1, -1, -1).clone()
        num_steps = means.shape[2]
        for t in range(num_steps):
            share, brought = self.by_first_step(t, means[1])
            means[0, :, t] = (share * brought).sum(1)
            if t + 1 < num_steps:
                share, brought = self.by_label(t, means[0])
                means[1, :, t + 1] = (share * brought).sum(-2)
        value = (self.last * self.at_end(means[0])).sum(-1)
        return Expected(torch.where(self.chain.lengths > 0, value, 0.0), means)

    def by_first_step(self, t: int, begins: Tensor) -> tuple[Tensor, Tensor]:
        """[N, l, K]: probabilities of segments that end with step t, and what they bring along."""
        share = softmax(self.prefixes.by_first_step(t), 1)
        first = slice(t + 1 - share.shape[1], t + 1)
        if self.values is None:
            return share, begins[:, first] + _surprisal(share)
        steps = self.values[0][:, first].flip(1).cumsum(1).flip(1)
        brought = begins[:, first] + steps + ending_at(self.values[2], t + 1)
        return share, torch.where(share > 0, brought, 0.0)

    def by_label(self, t: int, ends: Tensor) -> tuple[Tensor, Tensor]:
        """[N, K, K]: probabilities of labels up to step t, and what they bring along."""
        share = label_shares(self.chain, self.filtered, t)
        before = ends[:, t, :, None]
        if self.values is None:
            return share, before + _surprisal(share)
        brought = before + edges_at(self.values[1], t)
        return share, torch.where(share > 0, brought, 0.0)

    def at_end(self, ends: Tensor) -> Tensor:
        """[N, K]: what each label of the last segment brings along."""
        brought = at_step(ends, self.chain.lengths - 1)
        return brought + _surprisal(self.last) if self.values is None else brought


def _surprisal(prob: Tensor) -> Tensor:
    """-log of probabilities, 0 where they are 0."""
    return -torch.where(prob > 0, prob, 1.0).log()


class _Adjoint:
    """Carries gradients of log weights, and of means, from last to first."""

    def __init__(self, means: _Means, expected: Expected, needs: Needs) -> None:
        self.means, self.value, self.known = means, expected.value, expected.given
        chain = means.chain
        # Each [2, N, T, K]: gradients of log weights, then of means.
        self.ends = torch.zeros_like(self.known)
        self.begins, self.steps = torch.zeros_like(self.known), torch.zeros_like(self.known)
        no_move = torch.zeros_like(chain.transitions, dtype=torch.float64)
        self.moves = [no_move.clone() if need else None for need in (needs[1], needs[4])]
        one = torch.zeros((), dtype=torch.float64, device=no_move.device)
        by_size = one.expand(chain.segments.shape)
        self.segments = [SegmentGrads(by_size) if need else None for need in (needs[2], needs[5])]

    def run(self, grad_value: Tensor) -> Grads:
        """Gradients of emissions, transitions, segments, and of the values on each of them."""
        means, num_steps = self.means, self.known.shape[2]
        lengths, grad = means.chain.lengths, grad_value.double()[:, None]
        is_last = torch.arange(num_steps, device=lengths.device) == lengths[:, None] - 1
        surplus = means.at_end(self.known[0]) - self.value[:, None]
        for row, last in enumerate((means.last * surplus * grad, means.last * grad)):
            self.ends[row] += is_last.unsqueeze(-1) * last.unsqueeze(1)
        for t in reversed(range(num_steps)):
            if t + 1 < num_steps:
                self._back_over_labels(t)
            self._back_over_lengths(t)
        dtype = means.chain.emissions.dtype
        found = [
            [self.steps[n], self.moves[n], None if segments is None else segments.total]
            for n, segments in enumerate(self.segments)
        ]
        return [None if x is None else x.to(dtype) for x in (*found[0], *found[1])]

    def _back_over_labels(self, t: int) -> None:
        share, brought = self.means.by_label(t, self.known[0])
        surplus = brought - self.known[1, :, t + 1, None]
        for n, pulled in enumerate(_pull(share, surplus, self.begins[:, :, t + 1, None])):
            self.ends[n, :, t] += pulled.sum(-1)
            total = self.moves[n]
            if total is not None:
                add_edges(total, t, pulled)

    def _back_over_lengths(self, t: int) -> None:
        share, brought = self.means.by_first_step(t, self.known[1])
        surplus = brought - self.known[0, :, t, None]
        since = t + 1 - share.shape[1]
        for n, pulled in enumerate(_pull(share, surplus, self.ends[:, :, t, None])):
            self.begins[n, :, since : t + 1] += pulled
            self.steps[n, :, since : t + 1] += pulled.cumsum(1)
            segments = self.segments[n]
            if segments is not None:
                segments.add(t, pulled)


def _pull(share: Tensor, surplus: Tensor, grads: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the log weights and of the means of choices, from those [2, ...] of sums."""
    carried = share * grads[1]
    return share * grads[0] + carried * surplus, carried
