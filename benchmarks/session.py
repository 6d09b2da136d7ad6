"""What all commands share: threads, a progress bar, and where results go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.compare import compare, require_comparable
from benchmarks.environment import describe
from benchmarks.options import read_results
from benchmarks.pages import section_page
from benchmarks.results import Record, Results, ResultsError
from benchmarks.sections import SECTIONS
from benchmarks.structure import Structure
from benchmarks.structures import LINEAR_CHAIN
from benchmarks.tables import make_console, show


@dataclass(frozen=True)
class Session:
    command: str
    device: torch.device
    json: Path | None
    plot: Path | None
    markdown: Path | None
    earlier: Results | None
    structure: Structure = LINEAR_CHAIN

    def save(
        self, settings: Record, rows: list[Record], summary: list[Record] | None = None
    ) -> Results:
        """Write the JSON, if it was asked for."""
        environment = describe(self.device)
        if self.structure is not LINEAR_CHAIN:
            environment["structure"] = self.structure.name
            environment["backend"] = self.structure.backend_in_use(self.device)
        results = Results(self.command, environment, settings, rows, summary or [])
        if self.json is not None:
            results.save(self.json)
        return results

    def deliver(
        self, settings: Record, rows: list[Record], summary: list[Record] | None = None
    ) -> None:
        """Show the results, and write what was asked for."""
        results = self.save(settings, rows, summary)
        section, console = SECTIONS[self.command], make_console()
        for table in section.tables(results):
            show(table, console)
        if self.earlier is not None:
            show(compare(results, self.earlier), console)
        if self.plot is not None:
            section.plot(results, self.plot)
        if self.markdown is not None:
            self.markdown.write_text(section_page(results, self.markdown, self.plot))


def start(
    command: str,
    device: torch.device,
    threads: int,
    json: Path | None,
    plot: Path | None,
    markdown: Path | None,
    earlier: Path | None,
    structure: Structure = LINEAR_CHAIN,
) -> Session:
    """Pin the threads, and read what to compare with before any work is done."""
    old = None if earlier is None else read_results(earlier, "--compare")
    if old is not None:
        try:
            require_comparable(old, command)
        except ResultsError as error:
            raise typer.BadParameter(f"{earlier}: {error}", param_hint="--compare") from None
    torch.set_num_threads(threads)
    return Session(command, device, json, plot, markdown, old, structure)


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr; call what it gives with the name of each piece of work as it starts."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    with bar:
        task = bar.add_task("", total=total, completed=-1)
        yield lambda name: bar.update(task, description=name, advance=1)
