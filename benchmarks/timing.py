"""Times: interleaved, repeated until they are steady or a budget is spent."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import torch

Prepared = TypeVar("Prepared")


@dataclass(frozen=True)
class Timing:
    """Seconds: the median and the quartiles on either side of it."""

    median: float
    lower: float
    upper: float
    repeats: int


def summarise(seconds: list[float]) -> Timing:
    lower, median, upper = np.quantile(seconds, [0.25, 0.5, 0.75])
    return Timing(float(median), float(lower), float(upper), len(seconds))


@dataclass(frozen=True)
class Limits:
    """When a contender has been timed enough.

    After `budget` seconds in all (but `fewest` repeats), or when the interquartile range is within
    `steady` of the median after `usual` repeats and `shortest` seconds, or after `most` repeats.
    """

    budget: float = 10.0
    fewest: int = 3
    usual: int = 7
    most: int = 200
    shortest: float = 0.2
    steady: float = 0.05

    def enough(self, seconds: list[float]) -> bool:
        count, total = len(seconds), sum(seconds)
        if count >= self.most or (count >= self.fewest and total >= self.budget):
            return True
        if count < self.usual or total < self.shortest:
            return False
        timing = summarise(seconds)
        return timing.upper - timing.lower <= self.steady * timing.median


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Stopwatch:
    """Seconds of one call: by the clock on CPU, between two events on CUDA."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def __call__(self, function: Callable[[], object]) -> float:
        with _no_garbage_collection():
            return self._cuda(function) if self.device.type == "cuda" else self._cpu(function)

    def _cpu(self, function: Callable[[], object]) -> float:
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    def _cuda(self, function: Callable[[], object]) -> float:
        with torch.cuda.device(self.device):
            start = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            start.record()
            function()
            end.record()
            end.synchronize()
        return start.elapsed_time(end) / 1e3


def race(
    runners: Mapping[str, Callable[[Any], object]],
    prepare: Callable[[int], Prepared],
    stopwatch: Stopwatch,
    limits: Limits,
    convert: Mapping[str, Callable[[Prepared], object]] = MappingProxyType({}),
    warm_ups: int = 1,
) -> dict[str, Timing]:
    """Time all runners side by side: a round gives each the same fresh input, in turn.

    `prepare` makes the input of a round and is not timed; neither are first rounds to warm up, nor
    `convert`, which makes of that input what a runner can use, where it needs something else.
    """

    def own(name: str, prepared: Prepared) -> object:
        return convert[name](prepared) if name in convert else prepared

    warm_up = prepare(0)
    for _ in range(warm_ups):
        for name, run in runners.items():
            run(own(name, warm_up))
    seconds: dict[str, list[float]] = {name: [] for name in runners}
    for count in range(limits.most):
        running = [name for name in runners if not limits.enough(seconds[name])]
        if not running:
            break
        prepared = prepare(count + 1)
        first = count % len(running)
        for name in running[first:] + running[:first]:
            seconds[name].append(_timed(runners[name], own(name, prepared), stopwatch))
    return {name: summarise(each) for name, each in seconds.items()}


def _timed(run: Callable[[Any], object], prepared: object, stopwatch: Stopwatch) -> float:
    return stopwatch(lambda: run(prepared))


def estimate(seconds_at: Callable[[int], float], target: int, too_long: float) -> float:
    """Seconds of one run at batch `target`, from runs at batches 1, 4, 16, ... below it.

    A straight line through the last two tells; as soon as it says `too_long`, no more are tried.
    """
    points = [(1, seconds_at(1))]
    batch = 4
    while batch < target and _extrapolate(points, target) <= too_long:
        points.append((batch, seconds_at(batch)))
        batch *= 4
    return _extrapolate(points, target)


def _extrapolate(points: list[tuple[int, float]], target: int) -> float:
    batch, seconds = points[-1]
    if len(points) == 1:
        return seconds
    before, seconds_before = points[-2]
    slope = max(seconds - seconds_before, 0.0) / (batch - before)
    return seconds + slope * (target - batch)
