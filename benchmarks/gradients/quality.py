"""How far estimates of a gradient are from the truth.

All in units of the exact gradient g*, and over several problems the mean. Of independent estimates
with mean m and covariance C:

- bias: |m - g*| / |g*| (over several problems the root of the mean square), and its error, the root
  of tr C / N + e^2 over |g*|: what an unbiased estimator would show by chance alone, e being the
  error of g* itself if that is a reference, and that of rounding;
- squared bias: the difference of their squares, and never below 0;
- variance: tr C / |g*|^2;
- cosine: of the expected estimate and g*, its projection on g* over its norm, from whose square the
  share of chance, tr C / N, is taken off;
- log variance ratio: see `structdist.estimators.log_variance_ratio`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from torch import Tensor

from benchmarks.gradients.truth import Truth
from structdist.estimators import log_variance_ratio

ROUNDING = 1e-5  # of estimates in float32, over |g*|
ERRORS_TO_TELL = 3.0  # a bias below so many of its errors is not shown to be one


@dataclass(frozen=True)
class Quality:
    projection: float  # m g* / |g*|^2
    squared_norm: float  # of the expected estimate
    bias: float
    bias_error: float
    variance: float
    log_variance_ratio: float | None

    @property
    def bias_shown(self) -> bool:
        return self.bias > ERRORS_TO_TELL * self.bias_error

    @property
    def squared_bias(self) -> float:
        return max(self.bias**2 - self.bias_error**2, 0.0)

    @property
    def cosine(self) -> float:
        return self.projection / math.sqrt(self.squared_norm) if self.squared_norm else 0.0


def quality_of(estimates: Tensor, truth: Truth) -> Quality:
    """Of gradients [N, D]."""
    estimates, exact = estimates.double(), truth.gradient.to(estimates.device)
    mean, size = estimates.mean(0), exact.norm()
    variance = (estimates.var(0).sum() / size**2).item()
    chance = variance / len(estimates)
    projection = (mean @ exact / size**2).item()
    ratio = log_variance_ratio(estimates)
    return Quality(
        projection=projection,
        squared_norm=max((mean.norm() / size).item() ** 2 - chance, projection**2),
        bias=((mean - exact).norm() / size).item(),
        bias_error=math.sqrt(chance + truth.error**2 + ROUNDING**2),
        variance=variance,
        log_variance_ratio=None if math.isnan(ratio) else ratio,
    )


def mean_quality(qualities: Sequence[Quality]) -> Quality:
    """Over problems of one kind."""
    ratios = [q.log_variance_ratio for q in qualities if q.log_variance_ratio is not None]
    return Quality(
        projection=fmean(q.projection for q in qualities),
        squared_norm=fmean(q.squared_norm for q in qualities),
        bias=math.sqrt(fmean(q.bias**2 for q in qualities)),
        bias_error=math.sqrt(fmean(q.bias_error**2 for q in qualities)),
        variance=fmean(q.variance for q in qualities),
        log_variance_ratio=fmean(ratios) if ratios else None,
    )
