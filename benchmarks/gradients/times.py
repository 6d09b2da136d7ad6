"""How long an estimate takes, for comparisons at equal time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from benchmarks.gradients.tasks import Task
from benchmarks.results import Results
from benchmarks.timing import Limits, Stopwatch, race
from structdist.estimators import Estimator

Times = dict[tuple[int, str], float]  # seconds of one estimate, by length and estimator
TIMED_FUNCTION = "neighbours"
TIMED_CHAINS = 32  # in a batch


def measure_times(
    tasks: Sequence[Task],
    estimators: Sequence[str],
    calls: int,
    limits: Limits,
    progress: Callable[[str], object] = lambda _: None,
) -> Times:
    """Median seconds of one structure's estimate in a batch of several: from scores to gradients.

    All estimators of a length take turns. One task for each length.
    """
    times: Times = {}
    for task in tasks:
        progress(f"time, T={task.length}")
        runners = {
            name: partial(_estimate, task, task.estimator(name, calls)) for name in estimators
        }
        device = task.generator.device
        found = race(runners, lambda _: TIMED_CHAINS, Stopwatch(device), limits)
        times |= {(task.length, name): t.median / TIMED_CHAINS for name, t in found.items()}
    return times


def _estimate(task: Task, chosen: Estimator, chains: int) -> torch.Tensor:
    return task.estimates(chosen, chains)


def times_of(results: Results) -> Times:
    """Those of an earlier run."""
    return {
        (row["length"], row["estimator"]): row["seconds"]
        for row in results.rows
        if row["seconds"] is not None
    }
