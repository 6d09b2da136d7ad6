"""The command line: `python -m benchmarks COMMAND --help`."""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks import gradients as gradient_benchmark
from benchmarks import load as load_benchmark
from benchmarks import overhead as overhead_benchmark
from benchmarks import samplers as sampler_benchmark
from benchmarks import scaling as scaling_benchmark
from benchmarks import train_step as train_step_benchmark
from benchmarks.contenders import CONTENDERS
from benchmarks.estimators import ESTIMATORS
from benchmarks.neighbours import busy_neighbours
from benchmarks.operations import OPERATIONS
from benchmarks.options import (
    Budget,
    Busy,
    Compare,
    Device,
    Integers,
    Json,
    Markdown,
    Names,
    Numbers,
    Plot,
    Quick,
    Sizes,
    Threads,
    names_among,
    parse_integers,
    parse_numbers,
    parse_sizes,
    read_results,
    writable,
)
from benchmarks.pages import write_report
from benchmarks.problem import Size
from benchmarks.rewards import REWARDS
from benchmarks.sections import SECTIONS
from benchmarks.session import progress_bar, start
from benchmarks.spans.command import spans
from benchmarks.timing import Limits

app = typer.Typer(
    help="How fast structdist is, how good its gradients are, and how both scale.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command()(spans)

USUAL_SIZES = "100x38x20,100x38x50,16x256x64,8x512x128"
LOAD_SIZES = "100x38x20"
QUICK_SIZES = "16x16x8"
MOST_PATHS = 20_000  # that `gradients` enumerates
CPU = torch.device("cpu")
QUICK_LIMITS = Limits(budget=1.0, usual=5, most=15, shortest=0.05)
QUICK_SECONDS = 40.0  # for a busy machine; an idle one needs less


def _grid(help_text: str) -> typer.models.OptionInfo:
    return typer.Option(parser=parse_integers, metavar="N,N,...", help=help_text)


def _sizes(help_text: str) -> typer.models.OptionInfo:
    return typer.Option(parser=parse_sizes, metavar="BxTxK,...", help=help_text)


def _choice(known: dict[str, object] | list[str], help_text: str) -> typer.models.OptionInfo:
    names = ", ".join(known)
    return typer.Option(
        parser=names_among(list(known)), metavar="NAME,...", help=f"{help_text}: {names}."
    )


def _arena(device: torch.device, budget: float | None, quick: bool) -> sampler_benchmark.Arena:
    seconds = QUICK_SECONDS if quick else math.inf
    return sampler_benchmark.Arena(device, _limits(budget, quick), seconds)


def _limits(budget: float | None, quick: bool) -> Limits:
    limits = QUICK_LIMITS if quick else Limits()
    return limits if budget is None else replace(limits, budget=budget)


Operations = Annotated[Names | None, _choice(OPERATIONS, "What to measure")]


@app.command()
def samplers(
    batch: Annotated[Integers | None, _grid("A grid of sizes, with the next two.")] = None,
    length: Annotated[Integers | None, _grid("Default 38.")] = None,
    states: Annotated[Integers | None, _grid("Default 20,50.")] = None,
    size: Annotated[
        Sizes | None,
        _sizes(f"Sizes instead of a grid. Default {USUAL_SIZES} (quick: {QUICK_SIZES})."),
    ] = None,
    operation: Operations = None,
    contender: Annotated[
        Names | None, _choice([c.name for c in CONTENDERS], "Who takes part; default all")
    ] = None,
    budget: Budget = None,
    device: Device = CPU,
    threads: Threads = 2,
    busy: Busy = 0,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """Time and memory of inference and samplers, structdist beside others."""
    if size and (batch or length or states):
        raise typer.BadParameter("give sizes or a grid, not both", param_hint="--size")
    session = start("samplers", device, threads, json, plot, markdown, compare)
    if batch or length or states:
        grid = product(batch or (100,), length or (38,), states or (20, 50))
        sizes = [Size(*values) for values in grid]
    else:
        sizes = list(size or parse_sizes(QUICK_SIZES if quick else USUAL_SIZES))
    operations = [OPERATIONS[name] for name in operation or OPERATIONS]
    contenders = [c for c in CONTENDERS if contender is None or c.name in contender]
    arena = _arena(device, budget, quick)
    steps = len(sizes) * (len(operations) + 1)
    with busy_neighbours(busy), progress_bar(steps) as progress:
        rows = sampler_benchmark.run(sizes, operations, arena, contenders, progress)
    settings = {"sizes": list(map(str, sizes)), "limits": vars(arena.limits), "busy": busy}
    session.deliver(settings, rows)


@app.command()
def load(
    size: Annotated[Sizes | None, _sizes(f"Default {LOAD_SIZES} (quick: {QUICK_SIZES}).")] = None,
    operation: Operations = None,
    busy: Annotated[
        Integers | None, _grid("Numbers of busy processes, beside none. Default 1,2.")
    ] = None,
    budget: Budget = None,
    device: Device = CPU,
    threads: Threads = 2,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """How much longer structdist takes beside processes that keep cores busy.

    Without --operation: log-z.
    """
    session = start("load", device, threads, json, plot, markdown, compare)
    sizes = size or parse_sizes(QUICK_SIZES if quick else LOAD_SIZES)
    operations = [OPERATIONS[name] for name in operation or ("log-z",)]
    levels = busy or (1, 2)
    arena = _arena(device, budget, quick)
    with progress_bar(len(sizes) * len(operations)) as progress:
        rows = load_benchmark.run(sizes, operations, levels, arena, progress)
    session.deliver({"sizes": list(map(str, sizes)), "limits": vars(arena.limits)}, rows)


@app.command()
def gradients(
    function: Annotated[Names | None, _choice(REWARDS, "f; default all (quick: network)")] = None,
    estimator: Annotated[Names | None, _choice(ESTIMATORS, "Default all")] = None,
    temperature: Annotated[
        Numbers | None,
        typer.Option(parser=parse_numbers, metavar="X,X,...", help="Default 0.1,0.5,1,2."),
    ] = None,
    samples: Annotated[Integers | None, _grid("Draws an estimate averages. Default 1,5.")] = None,
    runs: Annotated[
        int | None, typer.Option(min=2, help="Estimates per row. Default 20000 (quick: 2000).")
    ] = None,
    length: Annotated[int, typer.Option(min=2)] = 5,
    states: Annotated[int, typer.Option(min=2)] = 3,
    baseline: Annotated[
        float | None, typer.Option(help="Constant of REINFORCE-C. Default: the best there is.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    device: Device = CPU,
    threads: Threads = 2,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """Bias and variance of gradient estimators, against enumeration."""
    if states**length > MOST_PATHS:
        raise typer.BadParameter(
            f"{states}^{length} paths are too many to enumerate, {MOST_PATHS} at most",
            param_hint="--length, --states",
        )
    session = start("gradients", device, threads, json, plot, markdown, compare)
    plan = gradient_benchmark.Plan(
        functions=function or (("network",) if quick else tuple(REWARDS)),
        estimators=estimator or tuple(ESTIMATORS),
        temperatures=temperature or (0.1, 0.5, 1.0, 2.0),
        samples=samples or (1, 5),
        length=length,
        states=states,
        runs=runs or (2_000 if quick else 20_000),
        constant=baseline,
        seed=seed,
    )
    with progress_bar(len(plan.functions) * len(list(plan.cells()))) as progress:
        rows = gradient_benchmark.run(plan, device, progress)
    session.deliver(vars(plan), rows)


@app.command()
def scaling(
    batch: Annotated[Integers | None, _grid("Default 1,4,16,64,256 (quick: 1,4,16).")] = None,
    length: Annotated[Integers | None, _grid("Default 16,...,1024 (quick: 8,16,32).")] = None,
    states: Annotated[Integers | None, _grid("Default 4,...,128 (quick: 4,8,16).")] = None,
    operation: Operations = None,
    base: Annotated[
        Integers | None, _grid("B,T,K kept fixed. Default 16,64,16 (quick: 4,16,8).")
    ] = None,
    budget: Budget = None,
    device: Device = CPU,
    threads: Threads = 2,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """How time and memory grow with T, K and B, with fitted exponents.

    Without --operation: log-z and gumbel-ffbs.
    """
    if base is not None and len(base) != 3:
        raise typer.BadParameter("three numbers are needed: B,T,K", param_hint="--base")
    session = start("scaling", device, threads, json, plot, markdown, compare)
    values = {
        "batch": batch or ((1, 4, 16) if quick else (1, 4, 16, 64, 256)),
        "length": length or ((8, 16, 32) if quick else (16, 32, 64, 128, 256, 512, 1024)),
        "states": states or ((4, 8, 16) if quick else (4, 8, 16, 32, 64, 128)),
    }
    operations = [OPERATIONS[name] for name in operation or ("log-z", "gumbel-ffbs")]
    size = Size(*(base or ((4, 16, 8) if quick else (16, 64, 16))))
    plan = scaling_benchmark.Plan(size, values, operations)
    arena = _arena(device, budget, quick)
    with progress_bar(len(plan.cells())) as progress:
        rows = scaling_benchmark.run(plan, arena, progress=progress)
    settings = {"base": str(size), "values": values, "limits": vars(arena.limits)}
    session.deliver(settings, rows, scaling_benchmark.exponents(rows))


@app.command()
def overhead(
    rounds: Annotated[int | None, typer.Option(min=1, help="Default 500 (quick: 50).")] = None,
    threads: Threads = 1,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """What each operation costs on the smallest chain, in units of one operation of torch."""
    session = start("overhead", CPU, threads, json, plot, markdown, compare)
    rounds = rounds or (50 if quick else 500)
    with progress_bar(rounds) as progress:
        rows = overhead_benchmark.run(rounds, progress)
    session.deliver({"size": str(overhead_benchmark.SMALLEST), "rounds": rounds}, rows)


@app.command("train-step")
def train_step(
    work: Annotated[
        Names | None, _choice(train_step_benchmark.WORK, "Estimators to train; default all")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Default 100 (quick: 10).")] = None,
    length: Annotated[int | None, typer.Option(min=1, help="Default 38 (quick: 12).")] = None,
    states: Annotated[int, typer.Option(min=1)] = 20,
    hidden: Annotated[int | None, typer.Option(min=1, help="Default 300 (quick: 50).")] = None,
    vocabulary: Annotated[int, typer.Option(min=5)] = 1000,
    budget: Budget = None,
    device: Device = CPU,
    threads: Threads = 2,
    busy: Busy = 0,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """Time and memory of a training step of the template VAE, per estimator."""
    session = start("train-step", device, threads, json, plot, markdown, compare)
    plan = train_step_benchmark.Plan(
        work or train_step_benchmark.WORK,
        batch or (10 if quick else 100),
        length or (12 if quick else 38),
        states,
        hidden or (50 if quick else 300),
        vocabulary,
    )
    limits = _limits(budget, quick)
    with busy_neighbours(busy), progress_bar(len(plan.work)) as progress:
        rows = train_step_benchmark.run(plan, device, limits, progress)
    session.deliver(vars(plan) | {"busy": busy}, rows)


@app.command()
def report(
    files: Annotated[list[Path], typer.Argument(help="JSON files of the other commands.")],
    out: Annotated[Path, typer.Option(callback=writable, help="The page to write.")] = Path(
        "benchmarks/RESULTS.md"
    ),
) -> None:
    """One Markdown page with plots out of results already there."""
    every = [read_results(path, str(path)) for path in files]
    commands = [results.command for results in every]
    for command in commands:
        if command not in SECTIONS:
            raise typer.BadParameter(f"results of an unknown command, {command}")
        if commands.count(command) > 1:
            raise typer.BadParameter(f"more than one file holds results of {command}")
    write_report(every, out, shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]))
    typer.echo(f"wrote {out}")
