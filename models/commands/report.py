"""`python -m models report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from jsonargparse import ArgumentParser

from models.report.collect import collect
from models.report.logs import runs_like
from models.report.page import render
from models.runs import load_run
from models.training.checkpoints import BEST
from models.training.files import replacing

USAGE = "report RUN [--compare RUN ...] [--output FILE]"
DETAILS = """\
One page, to open in a browser, with nothing to fetch: training curves, a comparison with other
runs, sentences coloured by state, a browser of templates, and what states stand for."""

COMPARE_HELP = "Runs to compare with; default: those beside it with the same task and corpus."


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("run", type=str, help="Folder of the run.")
    add("--compare", type=str, nargs="*", default=None, help=COMPARE_HELP)
    add("--output", type=str | None, help="The page; default RUN/report.html.")
    add("--checkpoint", type=Literal["best", "last"], default=BEST, help="By the dev set, or last.")


def run(options: Any) -> None:
    torch.manual_seed(0)
    folder = Path(options.run)
    trained = load_run(folder, options.checkpoint)
    others = runs_like(folder) if options.compare is None else [Path(r) for r in options.compare]
    page = render(collect(trained, others))
    path = Path(options.output) if options.output else folder / "report.html"
    with replacing(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    print(f"report: {path}")
