"""Exact gradients, estimates held to them, and what follows from both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from benchmarks.commands import app
from benchmarks.gradients import truth
from benchmarks.gradients.errors import (
    DIRECTION,
    SQUARED,
    break_evens,
    error_of,
    first_length,
)
from benchmarks.gradients.problems import PROBLEMS, Problem, random_problem
from benchmarks.gradients.quality import Quality, mean_quality, quality_of
from benchmarks.gradients.rewards import FUNCTIONS, Reward
from benchmarks.gradients.run import NAMES
from benchmarks.gradients.tasks import Task, make_task
from benchmarks.gradients.truth import Truth, by_dynamic_programming, by_enumeration, by_reference

CPU = torch.device("cpu")
BY_ENUMERATION_ALONE = {
    ("linear-chain", "network"),
    ("semi-markov", "neighbours"),
    ("semi-markov", "network"),
}
each_structure = pytest.mark.parametrize("structure", PROBLEMS)
each_function = pytest.mark.parametrize("function", FUNCTIONS)


def small(structure: str, function: str) -> tuple[Problem, Reward]:
    generator = torch.Generator().manual_seed(3)
    problem = random_problem(structure, 4, 3, generator)
    return problem, FUNCTIONS[function].random(problem.event_shape, generator)


@pytest.fixture(scope="module")
def task() -> Task:
    return make_task("linear-chain", "neighbours", length=4, states=3, seed=1, device=CPU)


@each_structure
@each_function
def test_dynamic_programs_agree_with_enumeration(structure: str, function: str) -> None:
    problem, reward = small(structure, function)
    found, expected = by_dynamic_programming(problem, reward), by_enumeration(problem, reward)
    assert expected is not None
    if (structure, function) in BY_ENUMERATION_ALONE:
        assert found is None
        return
    assert found is not None
    torch.testing.assert_close(found.gradient, expected.gradient, rtol=1e-10, atol=1e-12)
    assert found.mean_reward == pytest.approx(expected.mean_reward, rel=1e-10)


@each_structure
def test_a_reference_is_within_its_error(structure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed seed; the squared distance of a right one is over 4 times its mean in 1 of 1e3."""
    monkeypatch.setattr(truth, "REFERENCE_RUNS", 40)
    problem, reward = small(structure, "network")
    exact = by_enumeration(problem, reward)
    found = by_reference(problem, reward, torch.Generator().manual_seed(0))
    distance = (found.gradient - exact.gradient).norm() / exact.gradient.norm()
    assert 0 < found.error < 0.05
    assert distance < 2 * found.error
    assert found.mean_reward == pytest.approx(exact.mean_reward, abs=0.05)


@each_structure
@each_function
def test_rewards_are_linear_if_they_say_so(structure: str, function: str) -> None:
    problem, reward = small(structure, function)
    one, other = problem.distribution(problem.scores).topk(2).paths
    one, other = (problem.distribution(problem.scores).event_of(x) for x in (one, other))
    gap = reward((one + other) / 2) - (reward(one) + reward(other)) / 2
    assert (abs(gap.item()) < 1e-12) == (function == "linear")


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_calls_the_reward_as_often(name: str, task: Task) -> None:
    assert task.count_calls(task.estimator(name, calls=8)) == 8


@pytest.mark.parametrize("name", ["reinforce", "reinforce-c", "reinforce-ms", "muprop"])
def test_unbiased_ones_show_no_bias(name: str, task: Task) -> None:
    """Fixed seed; a right one exceeds three errors about once in a thousand seeds."""
    assert not task.assess(task.estimator(name, 8), 8, runs=1_000).bias_shown


def test_relaxed_ones_show_theirs(task: Task) -> None:
    for name in ("gumbel-crf", "pm-mrf", "sst"):
        quality = task.assess(task.estimator(name, 8, temperature=2.0), 8, runs=1_000)
        assert quality.bias_shown
        assert 0 < quality.cosine < 1


def test_the_mean_reward_is_a_better_constant_than_none() -> None:
    """Rewards of this kind are all positive."""
    task = make_task("linear-chain", "square", length=4, states=3, seed=0, device=CPU)
    with_it, without = (task.estimator(name, 8) for name in ("reinforce-c", "reinforce"))
    assert task.assess(with_it, 8, 500).variance < task.assess(without, 8, 500).variance


def test_runs_in_parts_are_as_good_as_at_once(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = task.estimator("simple", 8)
    whole = task.assess(chosen, 8, runs=600)
    monkeypatch.setattr("benchmarks.gradients.tasks.EVENT_NUMBERS_AT_A_TIME", 7 * 8 * 12)
    parts = task.assess(chosen, 8, runs=600)
    assert parts.variance == pytest.approx(whole.variance, rel=0.2)
    assert parts.bias == pytest.approx(whole.bias, rel=0.2)


def test_quality_of_known_estimates() -> None:
    exact = Truth(torch.tensor([3.0, 4.0]).double(), 0.0, "enumeration")
    estimates = exact.gradient + torch.tensor([[1.0, 0.0], [3.0, 0.0]])  # off by 2, variance 2
    quality = quality_of(estimates, exact)
    assert quality.bias == pytest.approx(2 / 5)
    assert quality.variance == pytest.approx(2 / 25)
    assert quality.bias_error == pytest.approx(1 / 5)
    assert quality.squared_bias == pytest.approx((4 - 1) / 25)
    assert quality.projection == pytest.approx(1 + 2 * 3 / 25)
    assert quality.squared_norm == pytest.approx((25 + 16 - 1) / 25)  # |(5, 4)|^2, less chance
    assert quality.cosine == pytest.approx(31 / 25 / (40 / 25) ** 0.5)
    assert quality.log_variance_ratio == pytest.approx(torch.tensor(2 / 5).log().item())


def test_the_error_of_a_reference_counts() -> None:
    exact = Truth(torch.tensor([3.0, 4.0]).double(), 0.0, "reference", error=0.3)
    quality = quality_of(exact.gradient + torch.tensor([[1.0, 0.0], [1.0, 0.0]]), exact)
    assert (quality.bias, quality.bias_error) == pytest.approx((0.2, 0.3))
    assert quality.squared_bias == 0
    assert quality.log_variance_ratio is None  # nothing moves


def test_mean_quality() -> None:
    one = Quality(1.0, 1.0, 3.0, 0.0, 2.0, None)
    other = Quality(0.5, 2.0, 4.0, 2.0, 4.0, -1.0)
    mean = mean_quality([one, other])
    assert (mean.projection, mean.squared_norm) == (0.75, 1.5)
    assert (mean.variance, mean.log_variance_ratio) == (3.0, -1.0)
    assert mean.squared_bias == pytest.approx((9 + 16) / 2 - 4 / 2)


def row(estimator: str, variance: float, seconds: float | None = 1.0) -> dict[str, object]:
    """Biased ones have a squared bias of 0.25 and a cosine of 0.8, and are half too short."""
    same = {"function": "linear", "length": 4, "temperature": None}
    quality = {"squared_bias": 0.25, "projection": 0.4, "squared_norm": 0.25}
    unbiased = estimator == "reinforce-ms"
    numbers = {"variance": variance, "seconds": seconds, "unbiased": unbiased}
    return {"estimator": estimator, **same, **quality, **numbers}


def test_errors() -> None:
    """The best factor of direction is found by search."""
    biased, unbiased = row("simple", 2.0), row("reinforce-ms", 2.0)
    assert error_of(biased, SQUARED) == pytest.approx(2.25)
    assert error_of(unbiased, SQUARED, relative_cost=3.0) == 6.0
    factors = torch.linspace(0, 2, 2001)
    for line, projection, squared_norm in ((biased, 0.4, 0.25), (unbiased, 1.0, 1.0)):
        searched = (1 - 2 * factors * projection + factors**2 * (squared_norm + 2.0)).min()
        assert error_of(line, DIRECTION) == pytest.approx(searched.item(), abs=1e-6)
    assert error_of({**biased, "projection": -0.4}, DIRECTION) == 1.0


def repeated(line: dict[str, object], share: float) -> dict[str, object]:
    return {**line, "variance": share * line["variance"]}


@pytest.mark.parametrize("criterion", [SQUARED, DIRECTION])
def test_errors_are_equal_where_they_break_even(criterion: str) -> None:
    """Of estimates of 8 calls, repeated until that number of calls is reached."""
    rows = [row("reinforce-ms", 5.0), row("gumbel-crf", 0.2, seconds=3.0)]
    (found,) = break_evens(rows, calls=8)
    for key, cost in (("calls", 1.0), ("time", 3.0)):
        share = 8 / found[criterion][key]
        assert 0 < share < 1
        yardstick, biased = (repeated(line, share) for line in rows)
        expected = error_of(yardstick, criterion)
        assert error_of(biased, criterion, cost) == pytest.approx(expected)
        assert error_of(repeated(biased, 2), criterion, cost) < error_of(
            repeated(yardstick, 2), criterion
        )


def test_some_never_break_even() -> None:
    exact = {"squared_bias": 0.0, "projection": 0.5}
    rows = [
        row("reinforce-ms", 5.0),
        row("imle", 6.0, seconds=None),
        {**row("simple", 1.0), **exact},
        {**row("reinmax", 1.0), "projection": -0.1},
    ]
    noisy, unbiased, opposite = break_evens(rows, calls=8)
    assert noisy[SQUARED] == noisy[DIRECTION] == {"calls": 0.0}  # nor was it timed
    assert unbiased[SQUARED] == unbiased[DIRECTION] == {"calls": None, "time": None}
    assert opposite[DIRECTION] == {"calls": 0.0, "time": 0.0}


@pytest.mark.parametrize(
    ("calls", "expected"),
    [((9, 9, 9), 4), ((7, 9, 9), 8), ((9, 7, 9), 16), ((9, 9, 7), None), ((8, None, 9), 8)],
)
def test_first_length(calls: tuple[float | None, ...], expected: int | None) -> None:
    lines = [{"length": n, SQUARED: {"calls": x}} for n, x in zip((4, 8, 16), calls, strict=True)]
    assert first_length(lines, SQUARED, "calls", budget=8) == expected
    assert first_length(lines, SQUARED, "time", budget=8) is None  # nothing was timed


TINY = "--quick --runs 4 --length 3 --states 2 --calls 3 --problems 2"


def run(*arguments: object) -> None:
    result = CliRunner().invoke(
        app, ["gradients", *TINY.split(), *map(str, arguments)], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output


def test_semi_markov_chains(tmp_path: Path) -> None:
    names = "simple", "imle", "reinforce-ms"
    options = "--structure", "semi-markov", "--function", "all", "--estimator", ",".join(names)
    run(*options, "--json", tmp_path / "x.json")
    rows = json.loads((tmp_path / "x.json").read_text())["rows"]
    found = {(r["function"], r["estimator"]) for r in rows}
    assert found == {(function, name) for function in FUNCTIONS for name in names}
    assert all(r["seconds"] > 0 for r in rows)


def test_times_of_an_earlier_run(tmp_path: Path) -> None:
    """Those it has; the others go without."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    run("--estimator", "simple,reinforce-ms", "--json", first)
    run("--estimator", "simple,reinforce,reinforce-ms", "--times", first, "--json", second)
    before, now = (
        {r["estimator"]: r["seconds"] for r in json.loads(path.read_text())["rows"]}
        for path in (first, second)
    )
    assert now == {**before, "reinforce": None}
