"""`python -m benchmarks gradients`: bias and variance of gradient estimators on small chains.

The exact gradient g* of E[f(z)] comes from enumeration. Of N independent runs of an estimator,
each over S samples, with mean m and covariance C:

- cosine: of m and g*;
- relative bias: |m - g*| / |g*|, and its Monte-Carlo error, sqrt(tr C / N) / |g*|: what the bias
  of an unbiased estimator would show, by chance alone;
- variance: tr C;
- log variance ratio: log(Var / |mean|), section 5.1 of Fu et al. (2020), per coordinate and then
  averaged over coordinates. The authors' released code averages the same way but takes the standard
  deviation in place of the variance; that one is `log_std_ratio` in the JSON. Neither is free of
  the scale of f, and both are noisy where a mean is near 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor

from benchmarks.estimators import (
    ESTIMATORS,
    NEEDS_TWO_SAMPLES,
    PATHWISE,
    Estimator,
    Setting,
    Target,
    enumerate_target,
)
from benchmarks.results import Record
from benchmarks.rewards import REWARDS

RUNS_AT_A_TIME = 5_000
ERRORS_TO_TELL = 3.0  # a bias below so many Monte-Carlo errors is not shown to be one


@dataclass(frozen=True)
class Quality:
    cosine: float
    relative_bias: float
    relative_bias_error: float
    variance: float
    log_variance_ratio: float
    log_std_ratio: float

    @property
    def unbiased(self) -> bool:
        return self.relative_bias <= ERRORS_TO_TELL * self.relative_bias_error


@dataclass(frozen=True)
class Row:
    function: str
    estimator: str
    temperature: float | None
    samples: int
    runs: int
    quality: Quality
    unbiased: bool


@dataclass(frozen=True)
class Plan:
    functions: Sequence[str]
    estimators: Sequence[str]
    temperatures: Sequence[float]
    samples: Sequence[int]
    length: int = 5
    states: int = 3
    runs: int = 20_000
    constant: float | None = None  # None: the best, by enumeration
    seed: int = 0

    def cells(self) -> Iterator[tuple[str, int, float | None]]:
        for name in self.estimators:
            for samples in self.samples:
                if samples == 1 and name in NEEDS_TWO_SAMPLES:
                    continue
                for temperature in self.temperatures if name in PATHWISE else (None,):
                    yield name, samples, temperature


def run(
    plan: Plan, device: torch.device, progress: Callable[[str], object] = lambda _: None
) -> list[Record]:
    rows = []
    for function in plan.functions:
        target = make_target(function, plan, device)
        constant = target.best_constant if plan.constant is None else plan.constant
        generator = torch.Generator(device).manual_seed(plan.seed)
        for name, samples, temperature in plan.cells():
            progress(f"{name}, {function}")
            setting = Setting(plan.runs, samples, temperature, constant, generator)
            quality = assess(ESTIMATORS[name], target, setting)
            row = Row(function, name, temperature, samples, plan.runs, quality, quality.unbiased)
            rows.append(asdict(row))
    return rows


def make_target(function: str, plan: Plan, device: torch.device) -> Target:
    generator = torch.Generator().manual_seed(plan.seed)
    shapes = (plan.length, plan.states), (plan.states, plan.states)
    emissions, transitions = (
        torch.randn(shape, generator=generator, dtype=torch.float64).to(device) for shape in shapes
    )
    reward = REWARDS[function](plan.length, plan.states, generator)
    return enumerate_target(emissions, transitions, reward)


def assess(estimator: Estimator, target: Target, setting: Setting) -> Quality:
    """Run the estimator in parts, to bound memory, and compare with the exact gradient."""
    parts = []
    for start in range(0, setting.runs, RUNS_AT_A_TIME):
        runs = min(RUNS_AT_A_TIME, setting.runs - start)
        parts.append(estimator(target, replace(setting, runs=runs)))
    return quality_of(torch.cat(parts), target.gradient)


def quality_of(estimates: Tensor, exact: Tensor) -> Quality:
    """From gradients [N, D] and the exact one [D]."""
    mean, variance = estimates.mean(0), estimates.var(0)
    size = exact.norm()
    return Quality(
        cosine=torch.cosine_similarity(mean, exact, 0).item(),
        relative_bias=((mean - exact).norm() / size).item(),
        relative_bias_error=((variance.sum() / len(estimates)).sqrt() / size).item(),
        variance=variance.sum().item(),
        log_variance_ratio=_mean_log_ratio(variance, mean),
        log_std_ratio=_mean_log_ratio(variance.sqrt(), mean),
    )


def _mean_log_ratio(spread: Tensor, mean: Tensor) -> float:
    tiny = torch.finfo(spread.dtype).tiny
    return (spread.clamp(min=tiny).log() - mean.abs().clamp(min=tiny).log()).mean().item()
