"""What the benchmarks compute: times, memory and exponents."""

from __future__ import annotations

import pytest
import torch

from benchmarks.memory import peak_bytes
from benchmarks.scaling import exponents_within, fit_exponent
from benchmarks.tables import number
from benchmarks.timing import Limits, Stopwatch, estimate, race, summarise

CPU = torch.device("cpu")


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
