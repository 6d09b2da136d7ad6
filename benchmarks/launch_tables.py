"""Launches and estimates in tables, always said to be no measurements."""

from __future__ import annotations

from benchmarks.estimates import LABEL
from benchmarks.results import Record, Results, value_at
from benchmarks.tables import NOTHING, Table, by_size, details, megabytes, number


def launch_columns(rows: list[Record]) -> list[str]:
    """Launches where they were counted, and estimates where a card was named."""
    cards = {row["estimate"]["card"] for row in rows if row.get("estimate")}
    columns = ["launches", "f+b launches"] if any(row.get("launches") for row in rows) else []
    for card in cards:
        columns += [f"{LABEL}: {card}, ms", f"f+b {LABEL}: {card}, ms"]
    return columns


def launch_cells(row: Record, rows: list[Record]) -> list[str]:
    """What stands below those columns."""
    cells = [_launches(row, "forward"), _launches(row, "forward_backward")]
    cells += [_estimate(row, "forward"), _estimate(row, "forward_backward")]
    return cells[: len(launch_columns(rows))]


def _launches(row: Record, key: str) -> str:
    launches = value_at(row, f"launches.{key}.count")
    return NOTHING if launches is None else f"{launches:,}"


def _estimate(row: Record, key: str) -> str:
    seconds = value_at(row, f"estimate.{key}")
    return NOTHING if seconds is None else number(1e3 * seconds)


def estimate_tables(results: Results) -> list[Table]:
    card, groups = results.settings["card"]["name"], by_size(results.rows)
    return [_estimate_table(f"{size}: {LABEL}", card, rows) for size, rows in groups.items()]


def _estimate_table(title: str, card: str, rows: list[Record]) -> Table:
    columns = ["operation", "contender", "dry run"]
    for run in ("", "f+b "):
        columns += [f"{run}launches", f"{run}time steps", f"{run}MB"]
        columns.append(f"{run}{LABEL}: {card}, ms")
    lines = [
        [
            row["operation"],
            row["contender"],
            value_at(row, "launches.how") or NOTHING,
            *_estimate_cells(row, "forward"),
            *_estimate_cells(row, "forward_backward"),
        ]
        for row in rows
    ]
    return Table(title, columns, lines, details(rows), texts=3)


def _estimate_cells(row: Record, key: str) -> list[str]:
    steps = value_at(row, f"launches.{key}.steps")
    return [
        _launches(row, key),
        NOTHING if steps is None else f"{steps:,}",
        megabytes(value_at(row, f"launches.{key}.num_bytes")),
        _estimate(row, key),
    ]
