"""A study while it runs: a table in a terminal, and lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from models.study.progress import CPU_SECONDS, epochs, nll_metric
from models.study.runner import Job


@contextmanager
def shown() -> Iterator[Callable[[Sequence[Job]], None]]:
    """A table that is kept up to date or, where there is no terminal, a line for what is new."""
    console, told = Console(markup=False, emoji=False), dict[str, str]()

    def tell(jobs: Sequence[Job]) -> None:
        for name, *cells in map(_cells, jobs):
            line = ", ".join(cell for cell in cells if cell)
            if told.get(name) != line:
                print(f"{name}: {line}", flush=True)
            told[name] = line

    if not console.is_terminal:
        yield tell
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda jobs: live.update(_table(jobs), refresh=True)


def _table(jobs: Sequence[Job]) -> Table:
    table = Table("run", "state", "epochs", "dev set", "CPU time")
    for job in jobs:
        table.add_row(*_cells(job))
    return table


def _cells(job: Job) -> tuple[str, ...]:
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
