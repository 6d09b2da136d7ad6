"""`python -m benchmarks scaling`: how time and memory grow with T, K and B (and L).

One of them grows while the others stay at a base size. The exponent is the slope of a
straight line through the larger half of the points, on log-log axes, by least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from benchmarks.contenders import Contender, heaviest
from benchmarks.operations import Operation
from benchmarks.problem import Size
from benchmarks.results import Record
from benchmarks.samplers import Arena, admit
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

    def cells(self) -> list[tuple[Operation, str, Size]]:
        return [
            (operation, axis, replace(self.base, **{axis: value}))
            for operation in self.operations
            for axis in AXES
            if axis in self.values
            for value in sorted(set(self.values[axis]))
        ]


def run(
    plan: Plan, arena: Arena, progress: Callable[[str], object] = lambda _: None
) -> list[Record]:
    rows: list[Record] = []
    for operation, axis, size in plan.cells():
        progress(f"{operation.name}, {size}")
        measured = measure(operation, axis, size, arena, plan.contenders())
        rows += [row.record() for row in measured]
    return rows


def measure(
    operation: Operation, axis: str, size: Size, arena: Arena, contenders: Sequence[Contender]
) -> list[Row]:
    """All contenders at one size, side by side; each is checked first, as in `samplers`."""
    admitted = {c.name: admit(c, operation, size, arena) for c in contenders}
    runners = {
        c.name: partial(heaviest(operation), c.works[operation.name])
        for c in contenders
        if admitted[c.name].status == "ok"
    }
    times = arena.race(runners, size)
    return [
        Row(
            operation.name,
            name,
            axis,
            size,
            row.status,
            row.detail,
            times.get(name),
            arena.peak(runners[name], size) if name in runners else None,
        )
        for name, row in admitted.items()
    ]


def exponents(rows: Sequence[Record]) -> list[Record]:
    """One record for each operation, contender and axis: the exponents of time and memory."""
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
            "time_exponent": _exponent(group, axis, lambda row: row["time"]["median"]),
            "memory_exponent": _exponent(group, axis, lambda row: row["bytes"]),
        }
        for (operation, contender, axis), group in groups.items()
    ]


def _exponent(group: list[Record], axis: str, value: Callable[[Record], float]) -> float | None:
    return fit_exponent([row[axis] for row in group], [value(row) for row in group])


def fit_exponent(sizes: Sequence[float], values: Sequence[float]) -> float | None:
    """The slope over the larger half of the sizes; None with fewer than two positive points."""
    points = sorted((s, v) for s, v in zip(sizes, values, strict=True) if s > 0 and v > 0)
    larger = points[-max(2, (len(points) + 1) // 2) :]
    if len({size for size, _ in larger}) < 2:
        return None
    x, y = np.log(np.array(larger, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])
