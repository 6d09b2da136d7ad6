"""What the benchmarks compute: times, memory, exponents, and the quality of gradients."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks.estimators import ESTIMATORS, Setting, Target, others_mean
from benchmarks.gradients import ERRORS_TO_TELL, Plan, assess, make_target, quality_of
from benchmarks.memory import peak_bytes
from benchmarks.rewards import REWARDS
from benchmarks.scaling import exponents_within, fit_exponent
from benchmarks.tables import number
from benchmarks.timing import Limits, Stopwatch, estimate, race, summarise
from structdist import LinearChainCRF

CPU = torch.device("cpu")
PLAN = Plan(tuple(REWARDS), tuple(ESTIMATORS), (1.0,), (2,), length=4, states=3, seed=3)


def setting(target: Target, **changes: object) -> Setting:
    generator = torch.Generator().manual_seed(5)
    return replace(Setting(4_000, 2, 1.0, target.best_constant, generator), **changes)


@pytest.mark.parametrize("function", REWARDS)
def test_exact_gradient_is_that_of_enumeration(function: str) -> None:
    target = make_target(function, PLAN, CPU)
    leaves = [x.clone().requires_grad_() for x in (target.emissions, target.transitions)]
    chain = LinearChainCRF(*leaves)
    events = chain.enumerate_support()
    mean = (chain.log_prob(events).exp() * target.reward(events)).sum()
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(mean, leaves)])
    torch.testing.assert_close(target.gradient, gradient)
    assert target.mean_reward == pytest.approx(mean.item())


@pytest.mark.parametrize("function", REWARDS)
def test_rewards_are_not_linear(function: str) -> None:
    target = make_target(function, PLAN, CPU)
    one, other = torch.eye(3, dtype=torch.float64)[torch.tensor([[0, 1, 2, 0], [1, 0, 0, 2]])]
    middle = target.reward((one + other) / 2)
    assert abs(middle - (target.reward(one) + target.reward(other)) / 2) > 1e-3


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if n.startswith("REINFORCE")])
def test_reinforce_is_unbiased(name: str) -> None:
    """Fixed seed; a right estimator exceeds three errors about once in a thousand seeds."""
    target = make_target("network", PLAN, CPU)
    quality = assess(ESTIMATORS[name], target, setting(target))
    assert quality.relative_bias < ERRORS_TO_TELL * quality.relative_bias_error
    assert quality.unbiased


def test_relaxed_estimators_are_shown_to_be_biased() -> None:
    target = make_target("network", PLAN, CPU)
    for name in ("Gumbel-CRF", "PM-MRF"):
        quality = assess(ESTIMATORS[name], target, setting(target, temperature=2.0))
        assert not quality.unbiased
        assert 0 < quality.cosine < 1


def test_the_best_constant_has_less_variance_than_others() -> None:
    target = make_target("exponential", PLAN, CPU)
    variances = {
        shift: assess(
            ESTIMATORS["REINFORCE-C"],
            target,
            setting(target, samples=1, constant=target.best_constant + shift),
        ).variance
        for shift in (-2.0, 0.0, 2.0)
    }
    assert min(variances, key=variances.__getitem__) == 0.0


def test_more_samples_divide_the_variance() -> None:
    target = make_target("pairwise", PLAN, CPU)
    one, four = (
        assess(ESTIMATORS["Gumbel-CRF"], target, setting(target, samples=s)).variance
        for s in (1, 4)
    )
    assert one / four == pytest.approx(4, rel=0.3)


def test_others_mean_leaves_one_out() -> None:
    rewards = torch.tensor([[1.0], [2.0], [6.0]])
    torch.testing.assert_close(others_mean(rewards), torch.tensor([[4.0], [3.5], [1.5]]))


def test_quality_of_known_estimates() -> None:
    exact = torch.tensor([3.0, 4.0])
    estimates = exact + torch.tensor([[1.0, 0.0], [3.0, 0.0]])  # off by 2, variance 2
    quality = quality_of(estimates.double(), exact.double())
    assert quality.relative_bias == pytest.approx(2 / 5)
    assert quality.variance == pytest.approx(2.0)
    assert quality.relative_bias_error == pytest.approx(1 / 5)


def test_log_variance_ratio_is_the_papers() -> None:
    mean, spread = torch.tensor([2.0, -0.5]).double(), torch.tensor([1.0, 3.0]).double()
    estimates = torch.stack([mean - spread, mean + spread])  # variance 2 spread^2
    ratios = torch.log(2 * spread**2 / mean.abs())
    quality = quality_of(estimates, mean)
    assert quality.log_variance_ratio == pytest.approx(ratios.mean().item())


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_exponent_is_found(power: float) -> None:
    sizes = [2.0**i for i in range(8)]
    assert fit_exponent(sizes, [3 * s**power for s in sizes]) == pytest.approx(power)


def test_exponent_is_that_of_the_larger_half() -> None:
    sizes = [2.0**i for i in range(10)]
    assert fit_exponent(sizes, [max(s, 16.0) for s in sizes]) == pytest.approx(1.0)
    assert fit_exponent([1.0], [1.0]) is None
    assert fit_exponent([], []) is None


def test_noise_widens_the_range_of_exponents() -> None:
    """By hand: of two points the slope is the ratio of values over that of sizes, in logs."""
    sizes, times = [8.0, 16.0], [(1.0, 2.0), (2.0, 8.0)]
    assert exponents_within(sizes, times) == pytest.approx((0.0, 3.0))
    assert exponents_within(sizes, [(1.0, 1.0), (2.0, 2.0)]) == pytest.approx((1.0, 1.0))


def test_summary_is_median_and_quartiles() -> None:
    timing = summarise([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (timing.lower, timing.median, timing.upper, timing.repeats) == (2.0, 3.0, 4.0, 5)


def test_limits() -> None:
    limits = Limits(budget=10, fewest=3, usual=7, most=20, shortest=0.2, steady=0.05)
    assert not limits.enough([100.0] * 2)
    assert limits.enough([100.0] * 3)  # over budget
    assert not limits.enough([0.1] * 6)
    assert limits.enough([0.1] * 7)  # steady
    assert not limits.enough([0.1, 0.2] * 5)  # not steady
    assert not limits.enough([0.001] * 7)  # too short to tell
    assert limits.enough([0.001] * 20)


def test_race_gives_all_the_same_fresh_inputs_in_turn() -> None:
    calls: list[tuple[str, int]] = []
    runners = {name: lambda x, name=name: calls.append((name, x)) for name in "ab"}
    limits = Limits(fewest=3, usual=3, most=3)
    timings = race(runners, lambda count: count, Stopwatch(CPU), limits)
    assert calls[:2] == [("a", 0), ("b", 0)]  # the warm-up, not timed
    assert calls[2:] == [("a", 1), ("b", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 3)]
    assert all(timing.repeats == 3 for timing in timings.values())


def test_estimate_extrapolates_and_gives_up_early() -> None:
    tried: list[int] = []

    def seconds_at(batch: int) -> float:
        tried.append(batch)
        return 1.0 + 0.5 * batch

    assert estimate(seconds_at, 100, too_long=1e9) == pytest.approx(51.0)
    assert tried == [1, 4, 16, 64]
    tried.clear()
    assert estimate(seconds_at, 100, too_long=10.0) == pytest.approx(51.0)
    assert tried == [1, 4]


def test_peak_memory_is_counted_to_the_byte() -> None:
    def allocate() -> None:
        first = torch.empty(1000, dtype=torch.float64)
        second = first.clone()
        del first
        second.clone()

    assert peak_bytes(allocate, CPU) == 16_000


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.02, "0.0200"), (1.234, "1.23"), (56.78, "56.8"), (1234.5, "1,234"), (None, "-")],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text
