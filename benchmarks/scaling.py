"""`python -m benchmarks scaling`: how time and memory grow with T, K and B (and L).

One of them grows while the others stay at a base size. The exponent is the slope of a
straight line through the larger half of the points, on log-log axes, by least squares.

What else a machine does only adds to times, and to some of the points more than to others. So all
sizes are timed there and back, the calmer of both times counts, and with the exponent of the lower
quartiles goes the range of all slopes that the quartiles leave: a wide one says that it was noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contenders import Contender, heaviest
from benchmarks.operations import Operation
from benchmarks.problem import Size
from benchmarks.results import Record
from benchmarks.samplers import Arena, admit
from benchmarks.samplers import Row as Admitted
from benchmarks.structures import structure_of
from benchmarks.timing import Timing

AXES = ("length", "longest", "states", "batch")
WHO = ("structdist", "reference")


@dataclass(frozen=True)
class Row:
    operation: str
    contender: str
    axis: str
    size: Size
    status: str
    detail: str | None = None
    time: Timing | None = None
    bytes: int | None = None

    def record(self) -> Record:
        """Plain values, with the numbers of the size among them."""
        values = asdict(self)
        return {key: x for key, x in values.items() if key != "size"} | values["size"]


@dataclass(frozen=True)
class Plan:
    base: Size
    values: Mapping[str, Sequence[int]]  # by axis
    operations: Sequence[Operation]

    def contenders(self) -> list[Contender]:
        return [c for c in structure_of(self.base).contenders if c.name in WHO]

    def lines(self) -> list[tuple[Operation, str, list[Size]]]:
        """For each operation and axis, all sizes along it."""
        return [
            (
                operation,
                axis,
                [replace(self.base, **{axis: value}) for value in sorted(set(values))],
            )
            for operation in self.operations
            for axis in AXES
            if (values := self.values.get(axis))
        ]

    @property
    def num_races(self) -> int:
        return 2 * sum(len(sizes) for _, _, sizes in self.lines())


class _Entry(NamedTuple):
    """Who runs at one size, and what is known of all contenders there."""

    size: Size
    admitted: Mapping[str, Admitted]
    runners: Mapping[str, Callable[[Any], object]]


def run(
    plan: Plan, arena: Arena, progress: Callable[[str], object] = lambda _: None
) -> list[Record]:
    rows: list[Record] = []
    for operation, axis, sizes in plan.lines():
        measured = measure(operation, axis, sizes, arena, plan.contenders(), progress)
        rows += [row.record() for row in measured]
    return rows


def measure(
    operation: Operation,
    axis: str,
    sizes: Sequence[Size],
    arena: Arena,
    contenders: Sequence[Contender],
    progress: Callable[[str], object] = lambda _: None,
) -> list[Row]:
    """All contenders at each size, side by side; each is checked first, as in `samplers`."""
    entries, there = [], []
    for size in sizes:
        progress(f"{operation.name}, {size}")
        entries.append(_enter(operation, size, arena, contenders))
        there.append(arena.race(entries[-1].runners, size))
    back = []
    for entry in reversed(entries):
        progress(f"{operation.name}, {entry.size} again")
        back.append(arena.race(entry.runners, entry.size))
    rows = []
    for entry, *times in zip(entries, there, reversed(back), strict=True):
        for name, admitted in entry.admitted.items():
            runner = entry.runners.get(name)
            calmer = None if runner is None else min((t[name] for t in times), key=_lower)
            peak = None if runner is None else arena.peak(runner, entry.size)
            known = admitted.status, admitted.detail, calmer, peak
            rows.append(Row(operation.name, name, axis, entry.size, *known))
    return rows


def _lower(timing: Timing) -> float:
    return timing.lower


def _enter(
    operation: Operation, size: Size, arena: Arena, contenders: Sequence[Contender]
) -> _Entry:
    admitted = {c.name: admit(c, operation, size, arena) for c in contenders}
    runners = {
        c.name: partial(heaviest(operation), c.works[operation.name])
        for c in contenders
        if admitted[c.name].status == "ok"
    }
    return _Entry(size, admitted, runners)


def exponents(rows: Sequence[Record]) -> list[Record]:
    """One record for each operation, contender and axis: the exponents of time and memory.

    The exponent of time comes with the range of slopes that lie within all quartiles.
    """
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for row in rows:
        if row["time"] is not None:
            key = row["operation"], row["contender"], row["axis"]
            groups.setdefault(key, []).append(row)
    return [
        {
            "operation": operation,
            "contender": contender,
            "axis": axis,
            "points": len(group),
            "time_exponent": _exponent(group, axis, lambda row: row["time"]["lower"]),
            "time_exponents": _exponents(group, axis),
            "memory_exponent": _exponent(group, axis, lambda row: row["bytes"]),
        }
        for (operation, contender, axis), group in groups.items()
    ]


def _exponent(group: list[Record], axis: str, value: Callable[[Record], float]) -> float | None:
    return fit_exponent([row[axis] for row in group], [value(row) for row in group])


def _exponents(group: list[Record], axis: str) -> tuple[float, float] | None:
    times = [(row["time"]["lower"], row["time"]["upper"]) for row in group]
    return exponents_within([row[axis] for row in group], times)


def fit_exponent(sizes: Sequence[float], values: Sequence[float]) -> float | None:
    """The slope over the larger half of the sizes; None with fewer than two positive points."""
    within = exponents_within(sizes, [(value, value) for value in values])
    return None if within is None else within[0]


def exponents_within(
    sizes: Sequence[float], ranges: Sequence[tuple[float, float]]
) -> tuple[float, float] | None:
    """The least and the largest slope of values that lie in these ranges, lowest and highest."""
    points = sorted((s, *r) for s, r in zip(sizes, ranges, strict=True) if s > 0 and r[0] > 0)
    larger = points[-max(2, (len(points) + 1) // 2) :]
    if len({size for size, *_ in larger}) < 2:
        return None
    x, lowest, highest = np.log(np.array(larger, dtype=float)).T
    weight = (x - x.mean()) / ((x - x.mean()) ** 2).sum()  # the slope is a weighted sum of values
    flattest = weight @ np.where(weight > 0, lowest, highest)
    steepest = weight @ np.where(weight > 0, highest, lowest)
    return float(flattest), float(steepest)
