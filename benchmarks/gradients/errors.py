"""Errors of estimates by two criteria, and up to how many reward calls a biased one is the better.

The mean of n / c independent estimates of c calls each has the variance v c / n, v being one's.

- Squared error, E|g - g*|^2: squared bias and variance. A gradient of 0 has the error 1, so those
  who say little do well by it.
- Error of direction: the least squared error that a factor on the estimate leaves (a learning rate
  is one), 1 - p^2 / (q + v), p being the projection of the expected estimate on g* and q its
  squared norm. It is between 0 and 1 for all.

At equal time, v counts as often as the estimate takes longer than one of the yardstick does. Both
errors of a biased estimator are below those of an unbiased one with variance v' up to some n: with
squared bias b, n = c (v' - v) / b, and with cosine k, n = c (k^2 v' - v / q) / (1 - k^2).
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import Record

YARDSTICK = "reinforce-ms"
BUDGETS = (8, 64, 512)  # reward calls
SQUARED, DIRECTION = "squared error", "error of direction"
CRITERIA = (SQUARED, DIRECTION)


def error_of(row: Record, criterion: str, relative_cost: float = 1.0) -> float:
    """Of an estimate that is repeated so much more seldom than another."""
    variance = relative_cost * row["variance"]
    if criterion == SQUARED:
        return float(_squared_bias(row) + variance)
    projection, squared_norm = _expected(row)
    return float(1 - projection**2 / (squared_norm + variance)) if projection > 0 else 1.0


def break_evens(rows: Sequence[Record], calls: int) -> list[Record]:
    """Of every estimator that is biased by theory: up to how many calls it beats the yardstick.

    None stands for any number: nothing is left of what was measured of its bias. Estimators that
    were not timed have no break-even at equal time.
    """
    found = []
    for row in rows:
        yardstick = find_yardstick(rows, row)
        if row["unbiased"] or yardstick is None:
            continue
        line = {key: row[key] for key in ("function", "length", "estimator", "temperature")}
        time = relative_time(row, yardstick)
        for criterion in CRITERIA:
            line[criterion] = {"calls": _break_even(row, yardstick, criterion, calls, 1.0)}
            if time is not None:
                line[criterion]["time"] = _break_even(row, yardstick, criterion, calls, time)
        found.append(line)
    return found


def _break_even(
    row: Record, yardstick: Record, criterion: str, calls: int, relative_cost: float
) -> float | None:
    variance = relative_cost * row["variance"]
    if criterion == SQUARED:
        saved, lost = yardstick["variance"] - variance, _squared_bias(row)
    else:
        projection, squared_norm = _expected(row)
        if projection <= 0:
            return 0.0
        squared_cosine = projection**2 / squared_norm
        saved = squared_cosine * yardstick["variance"] - variance / squared_norm
        lost = 1 - squared_cosine
    if saved <= 0:
        return 0.0
    return float(calls * saved / lost) if lost > 0 else None


def _squared_bias(row: Record) -> float:
    return 0.0 if row["unbiased"] else row["squared_bias"]


def _expected(row: Record) -> tuple[float, float]:
    """The projection and the squared norm of the expected estimate; by theory where it says."""
    return (1.0, 1.0) if row["unbiased"] else (row["projection"], row["squared_norm"])


def find_yardstick(rows: Sequence[Record], row: Record) -> Record | None:
    """The yardstick's own row, on the same reward and length."""
    for other in rows:
        same = other["function"] == row["function"] and other["length"] == row["length"]
        if same and other["estimator"] == YARDSTICK:
            return other
    return None


def relative_time(row: Record, yardstick: Record | None) -> float | None:
    """Seconds of an estimate over those of the yardstick."""
    if yardstick is None or row["seconds"] is None or yardstick["seconds"] is None:
        return None
    return float(row["seconds"] / yardstick["seconds"])


def first_length(lines: Sequence[Record], criterion: str, key: str, budget: int) -> int | None:
    """From which length on all lines of one estimator stay above a budget; None for no length."""
    first = None
    for line in sorted(lines, key=lambda line: -line["length"]):
        known = line[criterion]
        if key not in known or (known[key] is not None and known[key] <= budget):
            return first
        first = line["length"]
    return first
