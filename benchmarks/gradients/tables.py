"""The results of `gradients` as tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from benchmarks.gradients.errors import (
    BUDGETS,
    CRITERIA,
    DIRECTION,
    YARDSTICK,
    break_evens,
    error_of,
    find_yardstick,
    first_length,
    relative_time,
)
from benchmarks.results import Record, Results
from benchmarks.tables import NOTHING, Table, number

ESTIMATOR = "estimator, temperature"


def gradient_tables(results: Results) -> list[Table]:
    functions = list(dict.fromkeys(row["function"] for row in results.rows))
    calls = results.settings["calls"]
    found = break_evens(results.rows, calls)
    tables = [_overview(results.rows, calls)]
    tables += [
        _first_lengths(found, functions, criterion, key)
        for criterion in CRITERIA
        for key in ("calls", "time")
        if found
    ]
    for function in functions:
        rows = [row for row in results.rows if row["function"] == function]
        tables += [_errors(function, rows, criterion, calls) for criterion in CRITERIA]
        tables.append(_biases(function, rows, calls))
    return tables


def label(row: Record) -> str:
    """An estimator and its temperature."""
    temperature = row["temperature"]
    return row["estimator"] + (f", {temperature:g}" if temperature is not None else "")


def by_label(rows: Sequence[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row)
    return groups


def middle_length(rows: Sequence[Record]) -> int:
    lengths: list[int] = sorted({row["length"] for row in rows})
    return lengths[len(lengths) // 2]


def error_in_time(row: Record, rows: Sequence[Record], criterion: str) -> float | None:
    """In as much time as an estimate of the yardstick takes."""
    time = relative_time(row, find_yardstick(rows, row))
    return None if time is None else error_of(row, criterion, time)


def _overview(rows: list[Record], calls: int) -> Table:
    """The mean over rewards, without the linear one if there are others: some are exact there."""
    rows = [row for row in rows if row["function"] != "linear"] or rows
    lengths = list(dict.fromkeys(row["length"] for row in rows))
    lines = []
    for name, group in by_label(rows).items():
        cells = []
        for length in lengths:
            mine = [row for row in group if row["length"] == length]
            in_time = [error_in_time(row, rows, DIRECTION) for row in mine]
            timed = [error for error in in_time if error is not None]
            pair = fmean(error_of(row, DIRECTION) for row in mine), fmean(timed) if timed else None
            cells.append(" / ".join(map(number, pair)))
        lines.append([name, *cells])
    title = (
        f"Error of direction, mean over rewards that are not linear, with {calls} reward calls / "
        f"in the time of {YARDSTICK}"
    )
    return Table(title, [ESTIMATOR, *(f"T={x}" for x in lengths)], lines)


def _first_lengths(found: list[Record], functions: list[str], criterion: str, key: str) -> Table:
    budgets = ", ".join(map(str, BUDGETS))
    spent = f"with {budgets} reward calls each"
    if key == "time":
        spent = f"in the time that it takes for {budgets} reward calls"
    lines = []
    for name, group in by_label(found).items():
        cells = []
        for function in functions:
            mine = [line for line in group if line["function"] == function]
            firsts = [first_length(mine, criterion, key, budget) for budget in BUDGETS]
            cells.append(", ".join(NOTHING if x is None else str(x) for x in firsts))
        lines.append([name, *cells])
    title = f"Lengths from which on the {criterion} is below that of {YARDSTICK}, {spent}"
    return Table(title, [ESTIMATOR, *functions], lines)


def _errors(function: str, rows: list[Record], criterion: str, calls: int) -> Table:
    lines = []
    for name, group in by_label(rows).items():
        errors = ((error_of(r, criterion), error_in_time(r, rows, criterion)) for r in group)
        lines.append([name, *(" / ".join(map(number, pair)) for pair in errors)])
    lengths = dict.fromkeys(row["length"] for row in rows)
    title = f"f = {function}: {criterion}, with {calls} reward calls / in the time of {YARDSTICK}"
    return Table(title, [ESTIMATOR, *(f"T={x}" for x in lengths)], lines, _truths(rows))


def _truths(rows: list[Record]) -> list[str]:
    """How the exact gradient was found, if not the same for all in one line each."""
    by_length = {row["length"]: _truth(row) for row in rows}
    if len(set(by_length.values())) == 1:
        return [f"Exact gradient by {_truth(rows[0])}."]
    return [f"T={length}: exact gradient by {truth}." for length, truth in by_length.items()]


def _truth(row: Record) -> str:
    if row["truth_error"] == 0:
        return str(row["truth"])
    return f"{row['truth']}, error {number(100 * row['truth_error'], 2)}%"


def _biases(function: str, rows: list[Record], calls: int) -> Table:
    length = middle_length(rows)
    lines = [
        [
            label(row),
            f"{row['cosine']:.3f}",
            number(row["bias"]),
            number(row["bias_error"]),
            "yes" if row["bias_shown"] else "no",
            number(row["variance"]),
            number(row["log_variance_ratio"]),
            NOTHING if row["seconds"] is None else number(1e6 * row["seconds"]),
        ]
        for row in rows
        if row["length"] == length
    ]
    columns = ["cosine", "bias", "its error", "bias shown", "variance"]
    columns = [ESTIMATOR, *columns, "log variance ratio", "us an estimate"]
    return Table(f"f = {function}, T={length}, {calls} reward calls", columns, lines)
