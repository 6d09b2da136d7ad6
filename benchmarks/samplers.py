"""`python -m benchmarks samplers`: every operation by every contender that offers it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import torch

from benchmarks.cards import Card
from benchmarks.checks import Verdict, check, raised
from benchmarks.contenders import (
    CONTENDERS,
    Contender,
    floor_forward,
    floor_forward_backward,
    forward,
    forward_backward,
    heaviest,
)
from benchmarks.counting import Counted, NotCountedError, count
from benchmarks.estimates import Estimate
from benchmarks.foreign import ForeignWork
from benchmarks.memory import available_bytes, peak_bytes
from benchmarks.operations import Kind, Operation
from benchmarks.problem import Inputs, SegmentSize, Size, make_inputs
from benchmarks.results import Record
from benchmarks.timing import Limits, Stopwatch, Timing, estimate, race

CHAMPION = "structdist"
FLOOR = "floor"
CUDA_WARM_UPS = 3  # rounds, in which kernels are compiled and clocks rise; a CPU needs one
RUNS_PER_BUDGET = 2  # a contender of whom fewer would fit into the budget is skipped


@dataclass(frozen=True)
class Row:
    operation: str
    contender: str
    batch: int
    length: int
    states: int
    status: str = "ok"  # or "failed", "skipped"
    detail: str | None = None  # what failed, why it was skipped, or a note
    forward: Timing | None = None
    forward_backward: Timing | None = None
    forward_bytes: int | None = None
    forward_backward_bytes: int | None = None
    forward_speedup: float | None = None  # its time over structdist's
    forward_backward_speedup: float | None = None
    over_floor: float | None = (
        None  # its time over the floor's, forward+backward where there is one
    )
    launches: Counted | None = None  # of a GPU; in a dry run, where there is none
    estimate: Estimate | None = None  # of its time on a card, if one was asked for: not measured
    longest: int | None = None  # L, of chains that have it

    @property
    def size(self) -> Size:
        if self.longest is None:
            return Size(self.batch, self.length, self.states)
        return SegmentSize(self.batch, self.length, self.states, self.longest)

    def record(self) -> Record:
        """Plain values; the size in as many as it has."""
        return {key: x for key, x in asdict(self).items() if key != "longest" or x is not None}


class Arena:
    """Device, limits, and the verdicts already known."""

    def __init__(
        self,
        device: torch.device,
        limits: Limits,
        time_for_all: float = math.inf,
        card: Card | None = None,
    ) -> None:
        """After `time_for_all` seconds whoever is left is skipped; estimates are for `card`."""
        self.deadline = time.monotonic() + time_for_all
        self.card = card
        self.device = device
        self.limits = limits
        self.stopwatch = Stopwatch(device)
        self._verdicts: dict[tuple[str, str], Verdict] = {}

    def verdict(self, contender: Contender, operation: Operation, size: Size) -> Verdict:
        """Samplers are checked on small chains, once; the rest at each size."""
        if operation.kind in (Kind.VALUE, Kind.BEST_PATH):
            return check(contender, operation, size, self.device)
        key = contender.name, operation.name
        if key not in self._verdicts:
            self._verdicts[key] = check(contender, operation, size, self.device)
        return self._verdicts[key]

    def reason_to_skip(self, contender: Contender, operation: Operation, size: Size) -> str | None:
        return (
            contender.cannot_run(size, self.device)
            or ("the time for all is up" if time.monotonic() > self.deadline else None)
            or self._lack_of_memory(contender, size)
            or self._lack_of_time(contender, operation, size)
        )

    def _lack_of_memory(self, contender: Contender, size: Size) -> str | None:
        available = available_bytes(self.device)
        needed = contender.bytes_needed(size) if contender.bytes_needed else 0
        if available is not None and needed > available / 2:
            return f"over budget: needs {needed / 1e9:.1f} GB or more, half of what is free is less"
        return None

    def _lack_of_time(self, contender: Contender, operation: Operation, size: Size) -> str | None:
        run, work = heaviest(operation), contender.works[operation.name]

        def seconds_at(batch: int) -> float:
            inputs = make_inputs(replace(size, batch=batch), self.device, seed=0)
            return min(self.stopwatch(lambda: run(work, inputs)) for _ in range(2))

        allowed = self.limits.budget / RUNS_PER_BUDGET
        try:
            seconds = estimate(seconds_at, size.batch, allowed)
        except Exception:
            return None  # it cannot run: the check will tell
        if seconds > allowed:
            return (
                f"over budget: about {seconds:.1f} s a run, and not even "
                f"{RUNS_PER_BUDGET} runs fit into {self.limits.budget:g} s"
            )
        return None

    def breakdown(self, contender: Contender, operation: Operation, size: Size) -> str | None:
        """What it raises at this size, say for want of memory: samplers are checked on less."""
        try:
            run = heaviest(operation)
            run(contender.works[operation.name], make_inputs(size, self.device, seed=0))
        except Exception as error:
            return raised(error)
        return None

    def race(
        self,
        runners: Mapping[str, Callable[[Any], object]],
        size: Size,
        convert: Mapping[str, Callable[[Inputs], object]] = MappingProxyType({}),
    ) -> dict[str, Timing]:
        prepare = partial(make_inputs, size, self.device)
        warm_ups = CUDA_WARM_UPS if self.device.type == "cuda" else 1
        return race(runners, prepare, self.stopwatch, self.limits, convert, warm_ups)

    def peak(self, run: Callable[[Inputs], object], size: Size) -> int:
        inputs = make_inputs(size, self.device, seed=0)
        return peak_bytes(lambda: run(inputs), self.device)

    def with_launches(self, row: Row, contender: Contender, operation: Operation) -> Row:
        """Its launches, and the estimate that follows from them, where they can be counted."""
        if row.status != "ok" and self.device.type == "cuda":
            return row
        try:
            launches = count(contender, operation, row.size, self.device)
        except NotCountedError as error:
            reason = None if self.card is None else f"no estimate: {error}"
            return replace(row, detail="; ".join(filter(None, (row.detail, reason))) or None)
        estimated = None if self.card is None else Estimate.of(launches, self.card)
        return replace(row, launches=launches, estimate=estimated)


def run(
    sizes: Iterable[Size],
    operations: Sequence[Operation],
    arena: Arena,
    contenders: Sequence[Contender] = CONTENDERS,
    progress: Callable[[str], object] = lambda _: None,
) -> list[Record]:
    """Rows, as plain records. `progress` hears of each operation and size before it starts."""
    rows: list[Row] = []
    for size in sizes:
        progress(f"{FLOOR}, {size}")
        floor = measure_floor(size, arena)
        rows.append(floor)
        for operation in operations:
            progress(f"{operation.name}, {size}")
            compared = compare_contenders(operation, size, arena, contenders)
            rows += [replace(row, over_floor=_over_floor(row, floor)) for row in compared]
    return [row.record() for row in rows]


def compare_contenders(
    operation: Operation, size: Size, arena: Arena, contenders: Sequence[Contender]
) -> list[Row]:
    offering = [c for c in contenders if operation.name in c.works]
    rows = {c.name: admit(c, operation, size, arena) for c in offering}
    works = {c.name: c.works[operation.name] for c in offering if rows[c.name].status == "ok"}
    foreign = {name: work for name, work in works.items() if isinstance(work, ForeignWork)}
    convert = {name: work.arrays for name, work in foreign.items()}
    forwards = {name: partial(forward, work) for name, work in works.items()}
    boths = {name: partial(forward_backward, work) for name, work in works.items()}
    forwards |= {name: work.forward for name, work in foreign.items()}
    boths |= {name: work.forward_backward for name, work in foreign.items()}

    def peak(runners: Mapping[str, Callable[[Any], object]], name: str) -> int | None:
        return None if name in foreign else arena.peak(runners[name], size)

    for name, timing in arena.race(forwards, size, convert).items():
        rows[name] = replace(rows[name], forward=timing, forward_bytes=peak(forwards, name))
    if operation.differentiable:
        for name, timing in arena.race(boths, size, convert).items():
            most = peak(boths, name)
            rows[name] = replace(rows[name], forward_backward=timing, forward_backward_bytes=most)
    counted = [arena.with_launches(rows[c.name], c, operation) for c in offering]
    return with_speedups(counted)


def admit(contender: Contender, operation: Operation, size: Size, arena: Arena) -> Row:
    """A row without times: may this contender be timed?"""
    row = Row(operation.name, contender.name, **vars(size))
    reason = arena.reason_to_skip(contender, operation, size)
    if reason:
        return replace(row, status="skipped", detail=reason)
    verdict = arena.verdict(contender, operation, size)
    failure = verdict.failure or arena.breakdown(contender, operation, size)
    if failure:
        return replace(row, status="failed", detail=failure)
    return replace(row, detail=verdict.note)


def with_speedups(rows: list[Row]) -> list[Row]:
    """How many times structdist's time each of the others takes, if both are right."""
    champion = next((row for row in rows if row.contender == CHAMPION), None)
    if champion is None or champion.status != "ok":
        return rows
    return [row if row is champion else _with_speedup(row, champion) for row in rows]


def _with_speedup(row: Row, champion: Row) -> Row:
    def over(theirs: Timing | None, ours: Timing | None) -> float | None:
        return theirs.median / ours.median if theirs and ours else None

    return replace(
        row,
        forward_speedup=over(row.forward, champion.forward),
        forward_backward_speedup=over(row.forward_backward, champion.forward_backward),
    )


def _over_floor(row: Row, floor: Row) -> float | None:
    for theirs, bare in (
        (row.forward_backward, floor.forward_backward),
        (row.forward, floor.forward),
    ):
        if theirs and bare:
            return theirs.median / bare.median
    return None


def measure_floor(size: Size, arena: Arena) -> Row:
    times = arena.race({"T": floor_forward, "3T": floor_forward_backward}, size)
    return Row(
        FLOOR,
        "torch.mm",
        **vars(size),
        forward=times["T"],
        forward_backward=times["3T"],
    )
