"""Small named algebras: the specification of every dynamic program in this package.

An *element* is a tuple of tensors of one shape. Its first component is a log weight; the others
are carried along. `times` joins two independent pieces of a path, and is addition in every algebra
below; `add` (the semiring's sum, over a dimension) pools alternatives, and is what tells the
algebras apart. The unit of `times` is all zeros.

| algebra | element | the scan over a chain gives |
| --- | --- | --- |
| `LogSemiring` | `(log_weight,)` | log Z |
| `MaxSemiring` | `(log_weight,)` | score of the best path |
| `ExpectationSemiring` | `(log_weight, mean)` | log Z and E[f] of an additive f |
| `EntropySemiring` | `(log_weight, entropy)` | log Z and the entropy |

The last two carry *conditional* means and entropies (given where the path stands now), not
weighted sums of them, so that nothing large cancels however long the chain is.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

Element = tuple[Tensor, ...]


class Semiring(Protocol):
    """How alternatives are pooled over dimension `dim`."""

    def add(self, element: Element, dim: int) -> Element: ...


def times(left: Element, right: Element) -> Element:
    """Join two pieces of a path: weights multiply (log weights add), what is carried adds."""
    return tuple(a + b for a, b in zip(left, right, strict=True))


def logsumexp(log_weight: Tensor, dim: int) -> Tensor:
    """Like `torch.logsumexp`, with zero instead of NaN gradients where everything is -inf."""
    peak = log_weight.detach().amax(dim, keepdim=True)
    peak = torch.where(peak.isinf(), 0.0, peak)
    total = (log_weight - peak).exp().sum(dim)
    possible = total != 0  # NaN included, to stay NaN
    log_total = torch.where(possible, total, 1.0).log() + peak.squeeze(dim)
    return torch.where(possible, log_total, -torch.inf)


def log_softmax(log_weight: Tensor, dim: int) -> Tensor:
    """Like `torch.log_softmax`, with -inf instead of NaN where everything is -inf.

    The log of the sum is taken off after the peak: with large weights one number for both would
    have lost its small part.
    """
    peak = log_weight.detach().amax(dim, keepdim=True)
    shifted = log_weight - torch.where(peak.isinf(), 0.0, peak)
    log_total = logsumexp(shifted, dim).unsqueeze(dim)
    return shifted - torch.where(log_total.isinf(), 0.0, log_total)


def softmax(log_weight: Tensor, dim: int) -> Tensor:
    """Like `torch.softmax`, with zeros instead of NaN where everything is -inf."""
    return log_softmax(log_weight, dim).exp()


def _normalize(log_weight: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """The log total, and probabilities with their logs (log 0 given as 0: it is only weighted)."""
    log_prob = log_softmax(log_weight, dim)
    prob = log_prob.exp()
    return logsumexp(log_weight, dim), prob, torch.where(prob > 0, log_prob, 0.0)


class LogSemiring:
    """Sums of weights."""

    def add(self, element: Element, dim: int) -> Element:
        (log_weight,) = element
        return (logsumexp(log_weight, dim),)


class MaxSemiring:
    """The best weight."""

    def add(self, element: Element, dim: int) -> Element:
        (log_weight,) = element
        return (log_weight.amax(dim),)


class ExpectationSemiring:
    """Weights, and the mean of an additive function under them."""

    def add(self, element: Element, dim: int) -> Element:
        log_weight, mean = element
        log_total, prob, _ = _normalize(log_weight, dim)
        return log_total, (prob * mean).sum(dim)


class EntropySemiring:
    """Weights, and the entropy of what has been pooled under them (Algorithm 3 of Fu et al.)."""

    def add(self, element: Element, dim: int) -> Element:
        log_weight, entropy = element
        log_total, prob, log_prob = _normalize(log_weight, dim)
        return log_total, (prob * (entropy - log_prob)).sum(dim)
