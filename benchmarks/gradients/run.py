"""Every estimator on every reward and length, with as many reward calls for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import torch

from benchmarks.gradients.quality import mean_quality
from benchmarks.gradients.tasks import Task, make_task
from benchmarks.gradients.times import Times
from benchmarks.results import Record
from structdist.estimators import ESTIMATORS

NAMES = tuple(name for name in ESTIMATORS if name != "exact")


@dataclass(frozen=True)
class Plan:
    structure: str
    functions: Sequence[str]
    estimators: Sequence[str]
    temperatures: Sequence[float]
    lengths: Sequence[int]
    calls: int  # of the reward, for each estimate
    states: int
    problems: int  # of one kind, with scores and weights of their own
    runs: int  # estimates of each problem's gradient
    seed: int = 0

    def cells(self) -> Iterator[tuple[str, int]]:
        for function in self.functions:
            for length in self.lengths:
                yield function, length

    def estimators_with_temperatures(self) -> Iterator[tuple[str, float | None]]:
        for name in self.estimators:
            tempered = "temperature" in ESTIMATORS[name].settings
            for temperature in self.temperatures if tempered else (None,):
                yield name, temperature

    def task(self, function: str, length: int, problem: int, device: torch.device) -> Task:
        seed = 1_000 * self.seed + problem
        return make_task(self.structure, function, length, self.states, seed, device)


@dataclass(frozen=True)
class Row:
    function: str
    length: int
    estimator: str
    temperature: float | None
    unbiased: bool  # by theory
    projection: float
    squared_norm: float
    cosine: float
    bias: float
    bias_error: float
    bias_shown: bool
    squared_bias: float
    variance: float
    log_variance_ratio: float | None
    truth: str  # how the exact gradient was found
    truth_error: float
    seconds: float | None  # of one estimate, all its reward calls together


def run(
    plan: Plan,
    device: torch.device,
    times: Times,
    progress: Callable[[str], object] = lambda _: None,
) -> list[Record]:
    """Rows, as plain records. `progress` hears of each reward and length before its turn."""
    rows = []
    for function, length in plan.cells():
        progress(f"{function}, T={length}")
        tasks = [plan.task(function, length, i, device) for i in range(plan.problems)]
        for name, temperature in plan.estimators_with_temperatures():
            seconds = times.get((length, name))
            rows.append(asdict(assess(plan, tasks, name, temperature, seconds)))
    return rows


def assess(
    plan: Plan, tasks: Sequence[Task], name: str, temperature: float | None, seconds: float | None
) -> Row:
    """One estimator on problems of one kind."""
    qualities = [
        task.assess(task.estimator(name, plan.calls, temperature), plan.calls, plan.runs)
        for task in tasks
    ]
    quality = mean_quality(qualities)
    return Row(
        function=tasks[0].function,
        length=tasks[0].length,
        estimator=name,
        temperature=temperature,
        unbiased=ESTIMATORS[name].unbiased,
        **asdict(quality),
        bias_shown=quality.bias_shown,
        squared_bias=quality.squared_bias,
        cosine=quality.cosine,
        truth=tasks[0].truth.source,
        truth_error=max(task.truth.error for task in tasks),
        seconds=seconds,
    )
