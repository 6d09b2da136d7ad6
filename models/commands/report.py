"""`python -m models report`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from models.commands.options import add_run, load, watched
from models.files import write_text
from models.locks import locked

USAGE = "report RUN [--compare RUN ...] [--output FILE]"
DETAILS = """\
One page, to open in a browser, with nothing to fetch: training curves, a comparison with other
runs, sentences coloured by state, a browser of templates, and what states stand for."""

COMPARE_HELP = "Runs to compare with; default: those beside it with the same task and corpus."


def add_arguments(parser: ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--compare", type=str, nargs="*", default=None, help=COMPARE_HELP)
    parser.add_argument("--output", type=str | None, help="The page; default RUN/report.html.")


def run(options: Any) -> None:
    from models.report.collect import collect
    from models.report.logs import runs_like
    from models.report.page import render

    folder, trained = Path(options.run), load(options)
    others = runs_like(folder) if options.compare is None else [Path(r) for r in options.compare]
    path = Path(options.output) if options.output else folder / "report.html"
    with nullcontext() if options.output else locked(folder):
        write_text(path, render(collect(trained, others, watched)))
    print(f"report: {path}")
