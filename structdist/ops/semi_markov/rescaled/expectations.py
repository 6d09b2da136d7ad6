"""Expectations, entropies, and their adjoint.

`means` of what ends with a step, or may stand before one, are conditional: given that it does. With
w the probability of a choice (a first step, or the label before) given what it leads to, and f what
the choice brings along (the mean before it and its own value, or in an entropy -log w),

    mean = sum w f,        gradient of the logit of a choice = w (gradient of the log weight
                                                               + gradient of the mean * (f - mean)).

Values are read step by step in whatever form they have, and gradients added up in the form of what
they belong to: values that repeat for all lengths (`SemiMarkovChain.weighing`) take no more memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import full_precision, in_chain
from structdist.ops.edges import EdgeForm, edges_at
from structdist.ops.finite import bounded_scores
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
        return _Means(without_padding(chain), filtered, _Values(chain, values)).expect()


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
        means = _Means(without_padding(chain), filtered, _Values(chain, values))
        return _Adjoint(means, expected, needs).run(grad)


class _Values:
    """Values on parts, for one step after the other: in float64, and 0 in the padding."""

    def __init__(self, chain: SemiMarkovChain, values: Values) -> None:
        self.given = values
        self.active = in_chain(chain.lengths, chain.emissions.shape[1])
        nodes, nothing = values[0], torch.zeros_like(chain.emissions, dtype=torch.float64)
        here = self.active.unsqueeze(-1)
        self.nodes = nothing if nodes is None else torch.where(here, _wide(nodes), 0.0)

    def of_steps(self, first: slice) -> Tensor:
        """[N, l, K]: on the steps from each first step on, up to the last of these."""
        return self.nodes[:, first].flip(1).cumsum(1).flip(1)

    def of_moves(self, t: int) -> Tensor | float:
        """[1 or N, K, K]: on moves from step t on."""
        moves = self.given[1]
        return 0.0 if moves is None else self._inside(moves, edges_at(moves, t), t + 1)

    def of_segments(self, t: int) -> Tensor | float:
        """[1 or N, l, K]: on segments whose last step is t, the longest first."""
        segments = self.given[2]
        return 0.0 if segments is None else self._inside(segments, ending_at(segments, t + 1), t)

    def _inside(self, values: Tensor, here: Tensor, step: int) -> Tensor:
        here = _wide(here)
        if EdgeForm.of(values) is EdgeForm.PER_STEP:
            here = torch.where(self.active[:, step, None, None], here, 0.0)
        return here


def _wide(values: Tensor) -> Tensor:
    return bounded_scores(values.double())


class _Means:
    """Conditional means of values or, without values, conditional entropies."""

    def __init__(
        self, chain: SemiMarkovChain, filtered: Filtered, values: _Values | None = None
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
        brought = begins[:, first] + self.values.of_steps(first) + self.values.of_segments(t)
        return share, torch.where(share > 0, brought, 0.0)

    def by_label(self, t: int, ends: Tensor) -> tuple[Tensor, Tensor]:
        """[N, K, K]: probabilities of labels up to step t, and what they bring along."""
        share = label_shares(self.chain, self.filtered, t)
        before = ends[:, t, :, None]
        if self.values is None:
            return share, before + _surprisal(share)
        brought = before + self.values.of_moves(t)
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
        # Each [2, N, T, K]: gradients of log weights, then of means.
        self.ends = torch.zeros_like(self.known)
        self.begins, self.steps = torch.zeros_like(self.known), torch.zeros_like(self.known)
        values = (None, None, None) if means.values is None else means.values.given
        inputs = zip((*means.chain.scores, *values), needs, strict=True)
        zero = self.known.new_zeros(())
        like = [zero.expand(x.shape) if need and x is not None else None for x, need in inputs]
        self.moves = [None if x is None else x.clone() for x in like[1::3]]
        self.segments = [None if x is None else SegmentGrads(x) for x in like[2::3]]
        self.needs = needs

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
            [steps, moves, None if segments is None else segments.total]
            for steps, moves, segments in zip(self.steps, self.moves, self.segments, strict=True)
        ]
        pairs = zip([*found[0], *found[1]], self.needs, strict=True)
        return [x.to(dtype) if need and x is not None else None for x, need in pairs]

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
