"""A study while it runs: a table in a terminal, and lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.live import Live
from rich.table import Table

from models.study.progress import CPU_SECONDS, epochs, nll_metric
from models.study.runner import Job

Row = tuple[str, ...]


@contextmanager
def shown() -> Iterator[Callable[[Sequence[Job]], None]]:
    """A table that is kept up to date or, where there is no terminal, a line for what is new."""
    console, rows = Console(markup=False, emoji=False), dict[str, Row]()

    def show(jobs: Sequence[Job]) -> None:
        changed = {job.run.name: row for job in jobs if (row := _row(job)) != rows.get(row[0])}
        rows.update(changed)
        if live is None:
            for name, *cells in changed.values():
                print(f"{name}: {', '.join(filter(None, cells))}", flush=True)
        elif changed:
            table = Table("run", "state", "epochs", "dev set", "CPU time")
            for row in rows.values():
                table.add_row(*row)
            live.update(table, refresh=True)

    terminal = console.is_terminal
    with Live(console=console, auto_refresh=False) if terminal else nullcontext() as live:
        yield show


def _row(job: Job) -> Row:
    """Name, state, and how far its training is, or what is wrong."""
    if job.problem:
        return job.run.name, job.state, job.problem, "", ""
    metric = nll_metric([job.run])
    values, seconds = epochs(job.run, metric), epochs(job.run, CPU_SECONDS)
    return (
        job.run.name,
        job.state,
        f"{len(values)} of {job.run.config.training.epochs} epochs" if values else "",
        f"{metric.removeprefix('dev/')} {values[-1]:.3f}" if values else "",
        f"{seconds[-1] / 60:.1f} CPU minutes" if seconds else "",
    )
