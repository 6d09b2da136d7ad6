"""`python -m benchmarks load`: how much longer structdist takes beside busy neighbours.

Rounds take turns: a few runs on the quiet machine, a few beside one neighbour, beside two, and so
on, so that whatever else changes meanwhile changes for all of them. Each turn begins with a run
that is not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from statistics import fmean

from benchmarks.contenders import CONTENDERS, heaviest
from benchmarks.neighbours import busy_neighbours
from benchmarks.operations import Operation
from benchmarks.problem import Inputs, Size, make_inputs
from benchmarks.results import Record
from benchmarks.samplers import CHAMPION, Arena, admit
from benchmarks.timing import Timing, summarise

QUIET = 0
RUNS_PER_TURN = 5
WHO = next(c for c in CONTENDERS if c.name == CHAMPION)


@dataclass(frozen=True)
class Row:
    operation: str
    batch: int
    length: int
    states: int
    busy: int
    status: str
    detail: str | None = None
    time: Timing | None = None
    mean: float | None = None  # seconds; it feels the few runs that had to wait for a core
    over_quiet: float | None = None  # the median over that without neighbours
    mean_over_quiet: float | None = None


def run(
    sizes: Iterable[Size],
    operations: Sequence[Operation],
    busy: Sequence[int],
    arena: Arena,
    progress: Callable[[str], object] = lambda _: None,
) -> list[Record]:
    """Rows, as plain records. `progress` hears of each operation and size before it starts."""
    rows: list[Row] = []
    for size in sizes:
        for operation in operations:
            progress(f"{operation.name}, {size}")
            rows += measure(operation, size, busy, arena)
    return [asdict(row) for row in rows]


def measure(operation: Operation, size: Size, busy: Sequence[int], arena: Arena) -> list[Row]:
    """A row for each number of neighbours, none first; the answer is checked, as in `samplers`."""
    levels = sorted({QUIET, *busy})
    admitted = admit(WHO, operation, size, arena)
    work = partial(heaviest(operation), WHO.works[operation.name])
    about = operation.name, size.batch, size.length, size.states
    rows = {level: Row(*about, level, admitted.status, admitted.detail) for level in levels}
    if admitted.status == "ok":
        seconds = take_turns(work, size, levels, arena)
        rows = {level: _timed(row, seconds[level], seconds[QUIET]) for level, row in rows.items()}
    return list(rows.values())


def _timed(row: Row, seconds: list[float], quiet: list[float]) -> Row:
    time, bare = summarise(seconds), summarise(quiet)
    return replace(
        row,
        time=time,
        mean=fmean(seconds),
        over_quiet=time.median / bare.median,
        mean_over_quiet=fmean(seconds) / fmean(quiet),
    )


def take_turns(
    work: Callable[[Inputs], object], size: Size, levels: Sequence[int], arena: Arena
) -> dict[int, list[float]]:
    """Seconds of the work beside each number of neighbours, until each has been timed enough."""
    seconds: dict[int, list[float]] = {level: [] for level in levels}
    seeds = count()
    for turn in count():
        waiting = [level for level in levels if not arena.limits.enough(seconds[level])]
        if not waiting:
            break
        first = turn % len(waiting)
        for level in waiting[first:] + waiting[:first]:
            with busy_neighbours(level):
                seconds[level] += _one_turn(work, size, seeds, arena)
    return seconds


def _one_turn(
    work: Callable[[Inputs], object], size: Size, seeds: Iterator[int], arena: Arena
) -> list[float]:
    """Seconds of some runs, each on fresh inputs, after one to warm up."""
    seconds = []
    for _ in range(1 + RUNS_PER_TURN):
        inputs = make_inputs(size, arena.device, next(seeds))
        seconds.append(arena.stopwatch(lambda inputs=inputs: work(inputs)))
    return seconds[1:]
