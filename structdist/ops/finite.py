"""Numbers that stay finite where they were: sums and roundings that do not overflow."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.transforms import transforming

LARGEST_SCORE = 1e300  # no number of such scores on a path overflows in float64

# Rescaled sums up to here are redone in log space; the same numbers as trust<T>() in csrc/chain.h.
TRUST = {torch.float32: 1e-20, torch.float64: 1e-150}


def _within(x: Tensor, limit: float) -> Tensor:
    """`x`, clamped to +-limit; what is infinite or NaN stays, and so does the gradient."""
    if not (torch.is_grad_enabled() and x.requires_grad) and not transforming():
        return torch.where(x.isinf(), x, x.clamp(-limit, limit))
    finite = torch.where(x.isinf(), 0.0, x)
    return torch.where(x.isinf(), x, x.detach().clamp(-limit, limit) + (finite - finite.detach()))


def bounded_scores(scores: Tensor) -> Tensor:
    """Scores whose sums, which are float64, stay finite; -inf stays, and forbids."""
    return _within(scores, LARGEST_SCORE) if scores.dtype == torch.float64 else scores


def sum_of_scores(left: Tensor, right: Tensor) -> Tensor:
    """The sum of scores, and almost the largest number where it would overflow: only -inf forbids.

    Almost, by a few rounding errors, which would else take it beyond.
    """
    limits = torch.finfo(left.dtype)
    limit = limits.max / 2 * (1 - 4 * limits.eps)
    half = (left.detach() / 2).add(right.detach(), alpha=0.5)
    too_much = torch.where(half.abs() <= limits.max / 2, 0.0, half - half.clamp(-limit, limit))
    too_much = too_much.nan_to_num(0.0, 0.0, 0.0)
    return left + right.sub(too_much, alpha=2)


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """`x` in a dtype, finite where it was."""
    return x if x.dtype == dtype else _within(x, torch.finfo(dtype).max).to(dtype)


def all_below_inf(x: Tensor) -> bool:
    """Are all numbers below +inf, and none NaN?"""
    return x.numel() == 0 or bool(x.max() < torch.inf)  # NaN wins a max, and fails the comparison
