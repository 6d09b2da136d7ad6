"""From which length on, and up to how many reward calls, a biased estimator is the better one.

Means over n / c independent estimates of c calls each have the squared error b + v c / n, b being
the squared bias and v the variance of one estimate. An unbiased one with more variance, v', is
worse up to n = c (v' - v) / b. At equal time v counts as often as estimates of the other fit into
the time of one.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import Record

YARDSTICK = "reinforce-ms"
BUDGETS = (8, 64, 512)  # reward calls
CALLS, TIME = "at_equal_calls", "at_equal_time"


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
        line[CALLS] = _break_even(row, yardstick, calls, 1.0)
        time = relative_time(row, yardstick)
        if time is not None:
            line[TIME] = _break_even(row, yardstick, calls, time)
        found.append(line)
    return found


def _break_even(row: Record, yardstick: Record, calls: int, time: float) -> float | None:
    saved = yardstick["variance"] - time * row["variance"]
    if saved <= 0:
        return 0.0
    return calls * saved / row["squared_bias"] if row["squared_bias"] else None


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


def first_length(lines: Sequence[Record], key: str, budget: int) -> int | None:
    """From which length on all lines of one estimator stay above a budget; None for no length."""
    first = None
    for line in sorted(lines, key=lambda line: -line["length"]):
        if key not in line or (line[key] is not None and line[key] <= budget):
            return first
        first = line["length"]
    return first
