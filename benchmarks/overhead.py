"""`python -m benchmarks overhead`: what an operation costs however small its problem is.

The smallest chain that has everything (B=1, T=2, K=2) leaves the kernels nothing to do: what is
measured is the way there. The unit is what torch itself takes for one differentiable operation of
the kind, `torch.logsumexp(x, -1).sum().backward()` on as many numbers. All take turns of a few runs
in the same rounds, in an order that moves on, so ratios mean something on a busy machine too. The
first run of a turn, which finds the caches full of another's work, does not count. Every operation
builds its distribution anew; forward alone is on inputs without gradients.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from benchmarks.contenders import Work
from benchmarks.ours import STRUCTDIST
from benchmarks.problem import Inputs, Size, make_inputs
from benchmarks.results import Record
from benchmarks.timing import Stopwatch, Timing, summarise
from structdist import LinearChainCRF

SMALLEST = Size(batch=1, length=2, states=2)
CPU = torch.device("cpu")
PATH = torch.zeros(SMALLEST.batch, SMALLEST.length, dtype=torch.long)
UNIT = "torch.logsumexp"
RUNS_PER_TURN = 5
STOPWATCH = Stopwatch(CPU)


@dataclass(frozen=True)
class Probe:
    """One piece of work that is timed as a whole."""

    name: str
    work: Work
    backward: bool = False

    def prepare(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Leaves of its own, so that no gradient is added to another's."""
        return inputs.leaves() if self.backward else (inputs.emissions, inputs.transitions)

    def run(self, emissions: Tensor, transitions: Tensor) -> None:
        output = self.work(emissions, transitions)
        if self.backward:
            output.sum().backward()


PROBES = (
    Probe(UNIT, lambda e, t: torch.logsumexp(e, -1), backward=True),
    Probe("construct", LinearChainCRF),
    Probe("log-z", STRUCTDIST["log-z"]),
    Probe("log-z", STRUCTDIST["log-z"], backward=True),
    Probe("log-prob", lambda e, t: LinearChainCRF(e, t).log_prob(PATH), backward=True),
    Probe("entropy", STRUCTDIST["entropy"], backward=True),
    Probe("marginals", STRUCTDIST["marginals"]),
    Probe("rsample", STRUCTDIST["gumbel-ffbs"], backward=True),
    Probe("argmax", STRUCTDIST["viterbi"]),
    Probe("sample", STRUCTDIST["sample"]),
)
PARTS = ("construct", "forward", "sum", "backward", "release")


@dataclass(frozen=True)
class Row:
    operation: str
    backward: bool  # is the gradient part of it?
    part: str | None  # of a breakdown; None is the whole
    time: Timing
    over_unit: float  # its median over that of the unit


def run(rounds: int, progress: Callable[[str], object] = lambda _: None) -> list[Record]:
    """Rows, as plain records: every probe, then the parts of log Z with its gradient."""
    measures = [partial(_whole_seconds, probe) for probe in PROBES] + [part_seconds]
    seconds: list[list[list[float]]] = [[] for _ in measures]
    order = deque(range(len(measures)))
    for count in range(rounds):
        progress(f"round {count + 1}")
        inputs = make_inputs(SMALLEST, CPU, count)
        for place in order:
            turn = [measures[place](inputs) for _ in range(1 + RUNS_PER_TURN)]
            seconds[place] += turn[1:]
        order.rotate()
    return [asdict(row) for row in _rows(seconds)]


def _whole_seconds(probe: Probe, inputs: Inputs) -> list[float]:
    given = probe.prepare(inputs)
    return [STOPWATCH(lambda: probe.run(*given))]


def part_seconds(inputs: Inputs) -> list[float]:
    """Seconds of each of `PARTS`; release lets go of the distribution and of the graph."""
    emissions, transitions = inputs.leaves()
    clock = time.perf_counter
    moments = [clock()]
    dist = LinearChainCRF(emissions, transitions)
    moments.append(clock())
    log_z = dist.log_partition
    moments.append(clock())
    total = log_z.sum()
    moments.append(clock())
    total.backward()
    moments.append(clock())
    del dist, log_z, total
    moments.append(clock())
    return [after - before for before, after in pairwise(moments)]


def _rows(seconds: list[list[list[float]]]) -> list[Row]:
    """`seconds` has the runs of every probe, one number each, and then those of the parts."""
    columns = [list(column) for runs in seconds for column in zip(*runs, strict=True)]
    times = [summarise(column) for column in columns]
    names = [(probe.name, probe.backward, None) for probe in PROBES]
    names += [("log-z", True, part) for part in PARTS]
    unit = times[0].median
    return [
        Row(*name, timing, timing.median / unit) for name, timing in zip(names, times, strict=True)
    ]
