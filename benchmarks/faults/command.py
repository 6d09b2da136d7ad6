"""`python -m benchmarks faults`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import torch
import typer

from benchmarks.faults.cases import CASES, LONG, ask_all, long_chain
from benchmarks.faults.contenders import CONTENDERS, installed
from benchmarks.faults.outcomes import outcome_of
from benchmarks.options import Compare, Json, Markdown, Names, Plot, Quick, Threads, names_among
from benchmarks.session import start

QUICK_LENGTH = 500


def faults(
    contender: Annotated[
        Names | None,
        typer.Option(
            parser=names_among([c.name for c in CONTENDERS]),
            metavar="NAME,...",
            help=f"Default those installed of {', '.join(c.name for c in CONTENDERS)}.",
        ),
    ] = None,
    threads: Threads = 1,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """Hard cases, asked of every library that is installed: right, wrong, NaN or an error."""
    session = start("faults", torch.device("cpu"), threads, json, plot, markdown, compare)
    asked = [c for c in installed() if contender is None or c.name in contender]
    length = QUICK_LENGTH if quick else LONG
    cases = tuple(
        replace(case, name=f"T = {length:,}", questions=lambda: long_chain(length))
        if case.questions is long_chain
        else case
        for case in CASES
    )
    torch.manual_seed(0)
    rows = []
    for case, question, whom, ask in ask_all(asked, cases):
        outcome = outcome_of(lambda ask=ask, whom=whom: ask(whom))
        typer.echo(f"{case.name}, {question}, {whom.name}: {outcome}", err=True)
        rows.append(
            {
                "case": case.name,
                "about": case.about,
                "question": question,
                "contender": whom.name,
                "outcome": outcome.kind,
                "detail": outcome.detail,
            }
        )
    session.deliver({"length": length}, rows)
