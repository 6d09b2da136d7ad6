"""Results as Markdown: one section, or a page of several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import Record, Results
from benchmarks.sections import SECTIONS
from benchmarks.tables import markdown


def section_page(results: Results, page: Path, plot: Path | None) -> str:
    """A section with its command and environment; the plot's link is relative to the page."""
    section = SECTIONS[results.command]
    structure = results.environment.get("structure")
    title = section.title + (f", {structure}" if structure else "")
    parts = [
        f"## {title}",
        f"```\n{results.environment['command']}\n```",
        _environment(results.environment),
        section.about,
    ]
    if plot is not None:
        link = Path(os.path.relpath(plot, page.parent)).as_posix()
        parts.append(f"![{title}]({link})")
    parts += [markdown(table).rstrip() for table in section.tables(results)]
    return "\n\n".join(parts) + "\n"


def _environment(environment: Record) -> str:
    packages = ", ".join(
        f"{name} {version}" for name, version in environment["packages"].items() if version
    )
    backend = environment.get("backend")  # which older results do not tell
    served = f"structdist by its backend {backend}; " if backend else ""
    return (
        f"{environment['device']}, {environment['threads']} threads, {environment['os']}, "
        f"Python {environment['python']}, torch {environment['torch']}, {packages}; {served}"
        f"revision {environment['revision']}, {environment['date']}."
    )


def write_report(every: Sequence[Results], page: Path, command: str, preface: str) -> None:
    """A page of all results, with their plots in `results/` beside it."""
    plots = page.parent / "results"
    plots.mkdir(exist_ok=True)
    sections = []
    for results in every:
        plot = plots / f"{results.name}.png"
        SECTIONS[results.command].plot(results, plot)
        sections.append(section_page(results, page, plot))
    intro = (
        f"{preface.rstrip()}\n\nMade by\n\n```\n{command}\n```\n\n"
        "from the results of the commands named in each section.\n"
    )
    page.write_text("\n".join([intro, *sections]))
