"""The results of `gradients` as tables."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.gradients.break_even import (
    BUDGETS,
    CALLS,
    TIME,
    YARDSTICK,
    find_yardstick,
    first_length,
    relative_time,
)
from benchmarks.results import Record, Results
from benchmarks.tables import NOTHING, Table, number


def gradient_tables(results: Results) -> list[Table]:
    functions = list(dict.fromkeys(row["function"] for row in results.rows))
    calls = results.settings["calls"]
    tables = [_first_lengths(results.summary, functions, n) for n in BUDGETS] * bool(
        results.summary
    )
    for function in functions:
        rows = [row for row in results.rows if row["function"] == function]
        tables += [_errors(function, rows, calls), _biases(function, rows, calls)]
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


def squared_error(row: Record, rows: Sequence[Record], key: str) -> float | None:
    """At as many reward calls, or in as much time, as an estimate of the yardstick has."""
    if key == CALLS:
        return float(row["squared_error"])
    time = relative_time(row, find_yardstick(rows, row))
    return None if time is None else row["squared_bias"] + time * row["variance"]


def _first_lengths(summary: list[Record], functions: list[str], budget: int) -> Table:
    lines = []
    for name, group in by_label(summary).items():
        cells = []
        for function in functions:
            mine = [line for line in group if line["function"] == function]
            firsts = [first_length(mine, key, budget) for key in (CALLS, TIME)]
            cells.append(" / ".join(NOTHING if x is None else str(x) for x in firsts))
        lines.append([name, *cells])
    title = (
        f"The length from which on the error is below that of {YARDSTICK}, with {budget} reward "
        f"calls / in the time that it takes for {budget} calls"
    )
    return Table(title, ["estimator, temperature", *functions], lines)


def _errors(function: str, rows: list[Record], calls: int) -> Table:
    lengths = list(dict.fromkeys(row["length"] for row in rows))
    lines = []
    for name, group in by_label(rows).items():
        errors = ([squared_error(row, rows, key) for key in (CALLS, TIME)] for row in group)
        lines.append([name, *(" / ".join(map(number, pair)) for pair in errors)])
    title = (
        f"f = {function}: squared error over |g*|^2, with {calls} reward calls / in the time of "
        f"{YARDSTICK}"
    )
    truths = {row["length"]: _truth(row) for row in rows}
    notes = [f"T={length}: exact gradient by {truth}." for length, truth in truths.items()]
    if len(set(truths.values())) == 1:
        notes = [f"Exact gradient by {truths[lengths[0]]}."]
    return Table(title, ["estimator, temperature", *(f"T={x}" for x in lengths)], lines, notes)


def _truth(row: Record) -> str:
    if row["truth_error"] == 0:
        return str(row["truth"])
    return f"{row['truth']}, error {number(100 * row['truth_error'], 2)}%"


def _biases(function: str, rows: list[Record], calls: int) -> Table:
    length = middle_length(rows)
    columns = [
        "estimator, temperature",
        "cosine",
        "bias",
        "its error",
        "bias shown",
        "variance",
        "log variance ratio",
        "us an estimate",
    ]
    lines = [
        [
            label(row),
            f"{row['cosine']:.4f}",
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
    return Table(f"f = {function}, T={length}, {calls} reward calls", columns, lines)
