"""The results of `gradients` as tables."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.gradients.errors import (
    BUDGETS,
    CRITERIA,
    YARDSTICK,
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
    tables = []
    if results.summary:
        tables += [
            _first_lengths(results.summary, functions, criterion, key)
            for criterion in CRITERIA
            for key in ("calls", "time")
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


def _first_lengths(summary: list[Record], functions: list[str], criterion: str, key: str) -> Table:
    budgets = ", ".join(map(str, BUDGETS))
    spent = f"with {budgets} reward calls each"
    if key == "time":
        spent = f"in the time that it takes for {budgets} reward calls"
    lines = []
    for name, group in by_label(summary).items():
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
