"""Results and progress in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.color import Color
from rich.console import Console
from rich.progress import track
from rich.style import Style
from rich.table import Table
from rich.text import Text

from models.report.colours import rgb
from models.templates.segments import segments


def watched(values: Sequence[Any], what: str) -> Iterable[Any]:
    """The values, with a bar in a terminal, or with a line where it would be lost."""
    console = Console(stderr=True)
    if not console.is_terminal:
        print(f"{what}: {len(values):,}", file=sys.stderr, flush=True)
        return values
    return track(values, what, console=console, transient=True)


def coloured(words: Sequence[str], states: Sequence[int]) -> Text:
    """A sentence in the colours of its states; each run of a state ends with its number."""
    text = Text()
    for state, start, end in segments(states):
        style = Style(color=Color.from_rgb(*rgb(state, 0.6, 0.75)))
        text.append(" ".join(words[start:end]), style + Style(bold=True))
        text.append(f"/{state} ", style + Style(dim=True))
    text.rstrip()
    return text


def measure_table(title: str, rows: Iterable[tuple[str, float | int | None, str]]) -> Table:
    """Measures, their values, and what they are."""
    table = Table("measure", "value", "what it is", title=title)
    for name, value, meaning in rows:
        table.add_row(name, f"{value:.3f}" if isinstance(value, float) else str(value), meaning)
    return table
