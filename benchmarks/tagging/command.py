"""`python -m benchmarks tagging`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks.options import Compare, Json, Markdown, Names, Plot, Quick, Threads, names_among
from benchmarks.session import start
from benchmarks.spans.command import Data, corpus_at
from benchmarks.spans.encoder import EncoderSizes
from benchmarks.spans.training import Plan
from benchmarks.tagging.run import run
from benchmarks.tagging.taggers import LIBRARIES, installed


def tagging(
    data: Data,
    library: Annotated[
        Names | None,
        typer.Option(
            parser=names_among(list(LIBRARIES)),
            metavar="NAME,...",
            help=f"Whose CRF; default those installed of {', '.join(LIBRARIES)}.",
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Default 3 (quick: 1).")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Default 8 (quick: 2).")] = None,
    batch: Annotated[int, typer.Option(min=1)] = 32,
    hidden: Annotated[int | None, typer.Option(min=1, help="Default 64 (quick: 16).")] = None,
    folder: Annotated[
        Path, typer.Option(help="Where each result is kept; one that is there is not made again.")
    ] = Path("runs/tagging"),
    double: Annotated[bool, typer.Option("--double", help="In float64, not float32.")] = False,
    threads: Threads = 1,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """F1 and cost of one tagger on WNUT-17 with the CRF of each library."""
    session = start("tagging", torch.device("cpu"), threads, json, plot, markdown, compare)
    corpus = corpus_at(data)
    plan = Plan(
        taggers=library or tuple(installed()),
        seeds=range(seeds or (1 if quick else 3)),
        epochs=epochs or (2 if quick else 8),
        batch=batch,
        sizes=EncoderSizes(hidden=hidden or (16 if quick else 64)),
    )
    settings = vars(plan) | {"seeds": list(plan.seeds), "sizes": vars(plan.sizes)}
    settings["double"] = double
    rows = list(run(plan, corpus, folder, lambda line: typer.echo(line, err=True), double))
    session.deliver(settings, rows)
