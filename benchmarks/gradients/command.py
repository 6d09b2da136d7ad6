"""`python -m benchmarks gradients`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks.gradients.rewards import FUNCTIONS
from benchmarks.gradients.run import NAMES, Plan, run
from benchmarks.gradients.times import TIMED_FUNCTION, measure_times, times_of
from benchmarks.options import (
    Compare,
    Device,
    Integers,
    Json,
    Markdown,
    Names,
    Numbers,
    Plot,
    Quick,
    Threads,
    WhichStructure,
    names_among,
    parse_integers,
    parse_numbers,
    read_results,
)
from benchmarks.session import progress_bar, start
from benchmarks.structures import LINEAR_CHAIN
from benchmarks.timing import Limits

CPU = torch.device("cpu")
LENGTHS, QUICK_LENGTHS = (4, 8, 16, 32, 64, 128, 256), (4, 8)
TEMPERATURES, QUICK_TEMPERATURES = (0.5, 1.0, 2.0), (1.0,)
LIMITS = Limits(budget=1.0, fewest=3, usual=5, most=15, shortest=0.1)
QUICK_LIMITS = Limits(budget=0.1, fewest=3, usual=3, most=3, shortest=0.0)


def _names(known: tuple[str, ...], help_text: str) -> typer.models.OptionInfo:
    listed = f"{help_text}: {', '.join(known)}."
    return typer.Option(parser=names_among(known), metavar="NAME,...", help=listed)


def gradients(
    structure: WhichStructure = LINEAR_CHAIN,
    function: Annotated[
        Names | None, _names(tuple(FUNCTIONS), "f; default all (quick: neighbours)")
    ] = None,
    estimator: Annotated[Names | None, _names(NAMES, "Default all")] = None,
    temperature: Annotated[
        Numbers | None,
        typer.Option(parser=parse_numbers, metavar="X,X,...", help="Default 0.5,1,2 (quick: 1)."),
    ] = None,
    length: Annotated[
        Integers | None,
        typer.Option(
            parser=parse_integers, metavar="N,N,...", help="Default 4,8,...,256 (quick: 4,8)."
        ),
    ] = None,
    calls: Annotated[int, typer.Option(min=3, help="Of the reward, for each estimate.")] = 8,
    states: Annotated[int, typer.Option(min=2)] = 4,
    problems: Annotated[
        int | None, typer.Option(min=1, help="Random ones of each kind. Default 3 (quick: 1).")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=2, help="Estimates for each problem. Default 100.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    times: Annotated[
        Path | None,
        typer.Option(help="JSON of an earlier run: take its times instead of measuring any."),
    ] = None,
    device: Device = CPU,
    threads: Threads = 1,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """Bias, variance and cost of estimators of the gradient of E[f(z)], over length."""
    session = start("gradients", device, threads, json, plot, markdown, compare, structure)
    known = None if times is None else times_of(read_results(times, "--times"))
    plan = Plan(
        structure=structure.name,
        functions=function or (("neighbours",) if quick else tuple(FUNCTIONS)),
        estimators=estimator or NAMES,
        temperatures=temperature or (QUICK_TEMPERATURES if quick else TEMPERATURES),
        lengths=length or (QUICK_LENGTHS if quick else LENGTHS),
        calls=calls,
        states=states,
        problems=problems or (1 if quick else 3),
        runs=runs or 100,
        seed=seed,
    )
    if min(plan.lengths) < 2:
        raise typer.BadParameter("a chain of one step has no neighbours", param_hint="--length")
    steps = len(list(plan.cells())) + (len(plan.lengths) if known is None else 0)
    with progress_bar(steps) as progress:
        if known is None:
            tasks = [plan.task(TIMED_FUNCTION, x, 0, device) for x in plan.lengths]
            limits = QUICK_LIMITS if quick else LIMITS
            known = measure_times(tasks, plan.estimators, calls, limits, progress)
        rows = run(plan, device, known, progress)
    session.deliver(vars(plan), rows)
