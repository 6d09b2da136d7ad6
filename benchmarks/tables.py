"""A table, for the terminal and for Markdown; and how numbers look in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.results import Record

NOTHING = "-"
WIDTH = 210  # where the output is no terminal
SIZES = {"B": "batch", "T": "length", "L": "longest", "K": "states"}


@dataclass(frozen=True)
class Table:
    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    texts: int = 1  # so many columns on the left hold words, not numbers


def make_console() -> Console:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    return console


def show(table: Table, console: Console) -> None:
    rich = RichTable(title=escape(table.title), title_justify="left")
    for place, column in enumerate(table.columns):
        side = "left" if place < table.texts else "right"
        rich.add_column(column, justify=side, overflow="fold")
    for row in table.rows:
        rich.add_row(*map(escape, row))
    console.print(rich)
    for note in table.notes:
        console.print(f"  {escape(note)}")


def markdown(table: Table) -> str:
    rules = ["---" if i < table.texts else "---:" for i in range(len(table.columns))]
    lines = [table.columns, rules, *table.rows]
    text = "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in x) + " |" for x in lines
    )
    notes = "".join(f"\n- {note}" for note in table.notes)
    return f"**{table.title}**\n\n{text}\n" + (f"{notes}\n" if notes else "")


def milliseconds(timing: Record | None) -> str:
    """The median and, in brackets, the quartiles."""
    return NOTHING if timing is None else _with_quartiles(timing, 1e3)


def microseconds(timing: Record) -> str:
    return _with_quartiles(timing, 1e6)


def _with_quartiles(timing: Record, scale: float) -> str:
    median, lower, upper = (number(scale * timing[key]) for key in ("median", "lower", "upper"))
    return f"{median} [{lower}, {upper}]"


def megabytes(count: int | None) -> str:
    return NOTHING if count is None else number(count / 1e6)


def ratio(value: float | None) -> str:
    return NOTHING if value is None else f"{number(value)}x"


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits, never in scientific notation unless tiny or huge."""
    if value is None:
        return NOTHING
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    if abs(value) < 1:
        return f"{value:#.{digits}g}" if value else "0"
    whole_digits = len(str(int(abs(value))))
    return f"{value:,.{max(digits - whole_digits, 0)}f}"


def by_size(rows: list[Record]) -> dict[str, list[Record]]:
    """The rows of each table of sizes, under its title."""
    groups: dict[str, list[Record]] = {}
    for row in rows:
        groups.setdefault(size_of(row), []).append(row)
    return groups


def size_of(row: Record) -> str:
    return " ".join(f"{letter}={row[name]}" for letter, name in SIZES.items() if name in row)


def details(rows: list[Record]) -> list[str]:
    """The notes of a table: what is to be said of its rows."""
    words = {"ok": "note", "failed": "FAILED", "skipped": "skipped"}
    return [
        f"{words[row['status']]}: {_whose(row)}: {row['detail']}" for row in rows if row["detail"]
    ]


def _whose(row: Record) -> str:
    return ", ".join(row[key] for key in ("operation", "contender", "work") if key in row)
