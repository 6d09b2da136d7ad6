"""`python -m benchmarks ratios`: what a structure costs beside others and beside itself.

Both sides of a ratio run side by side, forward and backward, in rounds; the ratio of a round is
that of its medians. Memory is that of a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

import torch

from benchmarks.checks import check, raised
from benchmarks.contenders import Contender, heaviest
from benchmarks.environment import ROOT
from benchmarks.foreign import ForeignWork
from benchmarks.operations import Operation
from benchmarks.problem import SegmentSize, Size, make_inputs
from benchmarks.results import Record
from benchmarks.segment_works import torch_struct_bytes
from benchmarks.structures import LINEAR_CHAIN, SEMI_MARKOV, structure_of
from benchmarks.timing import Limits, Stopwatch, race

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Spread:
    median: float
    lowest: float
    highest: float
    rounds: int


@dataclass(frozen=True)
class Goal:
    limit: float
    at_least: bool = False

    def reached_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True)
class Row:
    work: str
    unit: str
    goal: Goal
    status: str = "ok"  # or "failed", "skipped"
    detail: str | None = None
    value: Spread | None = None
    reached: bool | None = None


@dataclass(frozen=True)
class Side:
    size: Size
    operation: str = "log-z"
    contender: str = "structdist"

    def absence(self) -> str | None:
        """Why the contender cannot take part, if it cannot."""
        return self._contender.cannot_run(self.size, CPU)

    def failure(self) -> str | None:
        """What is wrong with its answer, if anything."""
        verdict = check(self._contender, self._operation, self.size, CPU)
        return verdict.failure and f"{self.operation}, {self.contender}: {verdict.failure}"

    def runner(self) -> Callable[[Any], object]:
        work = self._contender.works[self.operation]
        if isinstance(work, ForeignWork):
            return work.forward_backward
        return partial(heaviest(self._operation), work)

    def arguments(self, seed: int) -> object:
        """What the runner is given."""
        inputs, work = make_inputs(self.size, CPU, seed), self._contender.works[self.operation]
        return work.arrays(inputs) if isinstance(work, ForeignWork) else inputs

    @property
    def _contender(self) -> Contender:
        return next(c for c in structure_of(self.size).contenders if c.name == self.contender)

    @property
    def _operation(self) -> Operation:
        return structure_of(self.size).operations[self.operation]


@dataclass(frozen=True)
class Ratio:
    """The time of one side over that of another."""

    work: str
    over: Side
    under: Side
    goal: Goal
    note: str | None = None
    unit = "x"

    def absence(self) -> str | None:
        return self.over.absence() or self.under.absence()

    def failure(self) -> str | None:
        return self.over.failure() or self.under.failure()

    def measure(self, limits: Limits) -> float:
        sides = {"over": self.over, "under": self.under}
        runners = {name: side.runner() for name, side in sides.items()}
        arguments = {name: side.arguments for name, side in sides.items()}
        times = race(runners, lambda seed: seed, Stopwatch(CPU), limits, arguments)
        return times["over"].median / times["under"].median


@dataclass(frozen=True)
class ExtraMemory:
    """GB that log Z with its gradient makes a fresh process grow by, beside its arguments."""

    work: str
    size: SegmentSize
    goal: Goal
    note: str | None = None
    unit = "GB"

    def absence(self) -> str | None:
        return None if sys.platform == "linux" else "peak memory is read from /proc"

    def failure(self) -> str | None:
        return None

    def measure(self, limits: Limits) -> float:
        numbers = map(str, structure_of(self.size).numbers(self.size))
        command = [sys.executable, "-m", "benchmarks.resident_memory", *numbers]
        threads = str(torch.get_num_threads())
        done = subprocess.run(
            [*command, threads], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return int(done.stdout) / 1e9


Case = Ratio | ExtraMemory


def chain_cases(quick: bool = False) -> list[Case]:
    """Of linear chains, on one thread; quick ones are small, and their goals mean little."""
    written = LINEAR_CHAIN.quick_sizes if quick else LINEAR_CHAIN.usual_sizes
    sizes = [LINEAR_CHAIN.size(*map(int, size.split("x"))) for size in written.split(",")]
    heavier = {
        "entropy": "entropy",
        "rsample": "gumbel-ffbs",
        "rsample, straight-through,": "gumbel-ffbs-st",
    }
    beside_jax = [
        Ratio(f"log Z over JAX, {size}", Side(size), Side(size, contender="jax"), Goal(1))
        for size in sizes
    ]
    beside_log_z = [
        Ratio(f"{name} over log Z, {size}", Side(size, operation), Side(size), Goal(2.5))
        for name, operation in heavier.items()
        for size in sizes
    ]
    return [*beside_jax, *beside_log_z]


def segment_cases(quick: bool = False) -> list[Case]:
    """Of semi-Markov chains, on two threads; quick ones are small, and their goals mean little."""
    batch, length = (2, 8) if quick else (16, 256)

    def chains(longest: int, states: int) -> SegmentSize:
        return SegmentSize(batch, length, states, longest)

    usual = chains(3, 4) if quick else chains(16, 32)
    fitting = chains(2, 2) if quick else chains(4, 8)
    short, long = (chains(2, 4), chains(4, 4)) if quick else (chains(8, 32), chains(64, 32))
    states = 4 if quick else 64
    big = SegmentSize(2, 20, 4, 5) if quick else SegmentSize(8, 4000, 64, 100)
    too_large = f"at {usual} it needs {torch_struct_bytes(usual) / 1e9:,.0f} GB or more"
    return [
        Ratio(
            f"log Z, torch-struct over structdist, {fitting}",
            Side(fitting, contender="torch-struct"),
            Side(fitting),
            Goal(100, at_least=True),
            f"torch-struct at a smaller size: {too_large}",
        ),
        Ratio(f"log Z, {long} over {short}", Side(long), Side(short), Goal(4)),
        Ratio(
            f"log Z, {chains(1, states)} over LinearChainCRF",
            Side(chains(1, states)),
            Side(Size(batch, length, states)),
            Goal(1.5),
        ),
        Ratio(f"rsample over log Z, {usual}", Side(usual, "gumbel-ffbs"), Side(usual), Goal(3)),
        Ratio(
            f"rsample, straight-through, over log Z, {usual}",
            Side(usual, "gumbel-ffbs-st"),
            Side(usual),
            Goal(3),
        ),
        Ratio(
            f"rsample_labels, straight-through, over log Z, {usual}",
            Side(usual, "gumbel-labels-st"),
            Side(usual),
            Goal(3),
        ),
        ExtraMemory(f"extra memory of log Z, {big}", big, Goal(0.7)),
    ]


CASES = {LINEAR_CHAIN.name: chain_cases, SEMI_MARKOV.name: segment_cases}
THREADS = {LINEAR_CHAIN.name: 1, SEMI_MARKOV.name: 2}  # of the goals


def run(
    wanted: Sequence[Case],
    rounds: int,
    limits: Limits,
    progress: Callable[[str], object] = lambda _: None,
) -> list[Record]:
    """Rows, as plain records. Every round goes through all cases, so that noise spreads evenly."""
    absences = {case.work: case.absence() for case in wanted}
    present = [case for case in wanted if absences[case.work] is None]
    failures: dict[str, str | None] = {}
    values: dict[str, list[float]] = {case.work: [] for case in wanted}
    for case in present:
        progress(f"check: {case.work}")
        failures[case.work] = case.failure()
    for _ in range(rounds):
        for case in present:
            progress(case.work)
            if failures[case.work] is None:
                failures[case.work] = _measure(case, limits, values[case.work])
    return [
        asdict(_row(case, absences[case.work], failures.get(case.work), values[case.work]))
        for case in wanted
    ]


def _measure(case: Case, limits: Limits, values: list[float]) -> str | None:
    """Add a value, or say what went wrong."""
    try:
        values.append(case.measure(limits))
    except Exception as error:  # a rival's fault must not end the run
        return raised(error)
    return None


def _row(case: Case, absence: str | None, failure: str | None, values: list[float]) -> Row:
    if absence is not None:
        return Row(case.work, case.unit, case.goal, "skipped", absence)
    if failure is not None:
        return Row(case.work, case.unit, case.goal, "failed", failure)
    spread = Spread(median(values), min(values), max(values), len(values))
    reached = case.goal.reached_by(spread.median)
    return Row(case.work, case.unit, case.goal, "ok", case.note, spread, reached)
