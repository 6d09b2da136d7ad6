"""`python -m benchmarks spans`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks.options import (
    Compare,
    Json,
    Markdown,
    Names,
    Plot,
    Quick,
    Threads,
    names_among,
)
from benchmarks.session import start
from benchmarks.spans.corpus import Corpus, CorpusError, read_corpus
from benchmarks.spans.encoder import EncoderSizes
from benchmarks.spans.taggers import TAGGERS
from benchmarks.spans.training import Plan, run

Data = Annotated[
    Path,
    typer.Option(envvar="STRUCTDIST_DATA", help="The folder that holds wnut17/, or that one."),
]


def corpus_at(data: Path) -> Corpus:
    try:
        return read_corpus(data)
    except CorpusError as error:
        raise typer.BadParameter(str(error), param_hint="--data") from None


def spans(
    data: Data,
    tagger: Annotated[
        Names | None,
        typer.Option(
            parser=names_among(list(TAGGERS)),
            metavar="NAME,...",
            help=f"What to train; default all: {', '.join(TAGGERS)}.",
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Default 3 (quick: 1).")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Default 15 (quick: 2).")] = None,
    batch: Annotated[int, typer.Option(min=1)] = 32,
    hidden: Annotated[int | None, typer.Option(min=1, help="Default 64 (quick: 16).")] = None,
    threads: Threads = 1,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """F1 of named entities on WNUT-17: a linear chain of tags beside chains of segments."""
    session = start("spans", torch.device("cpu"), threads, json, plot, markdown, compare)
    corpus = corpus_at(data)
    plan = Plan(
        taggers=tagger or tuple(TAGGERS),
        seeds=range(seeds or (1 if quick else 3)),
        epochs=epochs or (2 if quick else 15),
        batch=batch,
        sizes=EncoderSizes(hidden=hidden or (16 if quick else 64)),
    )
    settings = vars(plan) | {"seeds": list(plan.seeds), "sizes": vars(plan.sizes)}
    settings |= {"longest": corpus.longest, "labels": corpus.labels}
    rows = []
    for row in run(plan, corpus, lambda line: typer.echo(line, err=True)):
        rows.append(row)
        session.save(settings, rows)  # training takes long: what is done is kept
    session.deliver(settings, rows)
