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

from benchmarks import estimates as estimate_benchmark
from benchmarks import load as load_benchmark
from benchmarks import overhead as overhead_benchmark
from benchmarks import ratios as ratio_benchmark
from benchmarks import samplers as sampler_benchmark
from benchmarks import scaling as scaling_benchmark
from benchmarks import train_step as train_step_benchmark
from benchmarks.cards import CARDS, Card
from benchmarks.contenders import CONTENDERS, Contender, at_home
from benchmarks.faults.command import faults
from benchmarks.gradients.command import gradients
from benchmarks.neighbours import busy_neighbours
from benchmarks.operations import OPERATIONS, SEGMENT_OPERATIONS, Operation
from benchmarks.options import (
    Budget,
    Busy,
    Compare,
    Device,
    GpuCard,
    Integers,
    Json,
    Markdown,
    Names,
    Plot,
    Quick,
    Sizes,
    Threads,
    WhichStructure,
    names_among,
    parse_integers,
    parse_sizes,
    positive,
    read_results,
    sizes_of,
    writable,
)
from benchmarks.pages import write_report
from benchmarks.sections import SECTIONS
from benchmarks.session import progress_bar, start
from benchmarks.spans.command import spans
from benchmarks.structure import Structure
from benchmarks.structures import LINEAR_CHAIN, SEMI_MARKOV
from benchmarks.tagging.command import tagging
from benchmarks.timing import Limits

app = typer.Typer(
    help="How fast structdist is, how good its gradients are, and how both scale.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command()(faults)
app.command()(gradients)
app.command()(spans)
app.command()(tagging)

USUAL_SIZES = LINEAR_CHAIN.usual_sizes
LOAD_SIZES = "100x38x20"
QUICK_SIZES = LINEAR_CHAIN.quick_sizes
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


def _arena(
    device: torch.device, budget: float | None, quick: bool, card: Card | None = None
) -> sampler_benchmark.Arena:
    seconds = QUICK_SECONDS if quick else math.inf
    return sampler_benchmark.Arena(device, _limits(budget, quick), seconds, card)


def _limits(budget: float | None, quick: bool) -> Limits:
    limits = QUICK_LIMITS if quick else Limits()
    return limits if budget is None else replace(limits, budget=budget)


def _taking_part(
    names: Names | None, *devices: str, structure: Structure = LINEAR_CHAIN
) -> list[Contender]:
    known = [c.name for c in structure.contenders]
    _require_known(names, known, structure, "--contender")
    if names:
        return [c for c in structure.contenders if c.name in names]
    return at_home(*devices, among=structure.contenders)


def _operations(names: Names | None, structure: Structure, *usual: str) -> list[Operation]:
    _require_known(names, list(structure.operations), structure, "--operation")
    return [structure.operations[name] for name in names or usual or structure.operations]


def _require_known(
    names: Names | None, known: list[str], structure: Structure, option: str
) -> None:
    for name in names or ():
        if name not in known:
            what = f"{name!r} is not one of {', '.join(known)}, which a {structure.name} has"
            raise typer.BadParameter(what, param_hint=option)


def _given(structure: Structure, axes: dict[str, Integers | None]) -> dict[str, Integers]:
    """What was said of its axes; an axis of another structure is an error."""
    given = {axis: values for axis, values in axes.items() if values is not None}
    for axis in given:
        if axis not in structure.axes:
            raise typer.BadParameter(f"a {structure.name} has none", param_hint=f"--{axis}")
    return given


Operations = Annotated[Names | None, _choice(OPERATIONS, "What to measure")]
AnyOperations = Annotated[
    Names | None, _choice({**OPERATIONS, **SEGMENT_OPERATIONS}, "What to measure")
]
Longest = Annotated[Integers | None, _grid("L, the longest segments, of semi-Markov chains.")]
WhoTakesPart = Annotated[
    Names | None,
    _choice([c.name for c in CONTENDERS], "Who takes part; default all who are at home there"),
]


@app.command()
def samplers(
    structure: WhichStructure = LINEAR_CHAIN,
    batch: Annotated[Integers | None, _grid("A grid of sizes, with the next three.")] = None,
    length: Annotated[Integers | None, _grid("Default 38.")] = None,
    longest: Longest = None,
    states: Annotated[Integers | None, _grid("Default 20,50 (semi-markov: 20).")] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="BxTxK,...",
            help=f"Sizes instead of a grid. Default {USUAL_SIZES} (quick: {QUICK_SIZES}); "
            f"semi-markov: {SEMI_MARKOV.form}, default {SEMI_MARKOV.usual_sizes} "
            f"(quick: {SEMI_MARKOV.quick_sizes}).",
        ),
    ] = None,
    operation: AnyOperations = None,
    contender: WhoTakesPart = None,
    estimate: GpuCard = None,
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
    """Time, memory and launches of inference and samplers, structdist beside others.

    With --estimate the table also has what a model on paper says of a GPU, which need not be here.
    """
    axes = {"batch": batch, "length": length, "longest": longest, "states": states}
    grid = _given(structure, axes)
    if size and grid:
        raise typer.BadParameter("give sizes or a grid, not both", param_hint="--size")
    operations = _operations(operation, structure)
    gpu = ["cuda"] if estimate else []
    contenders = _taking_part(contender, device.type, *gpu, structure=structure)
    if grid:
        every = {**structure.usual_grid, **grid}
        sizes = [structure.size(*x) for x in product(*(every[axis] for axis in structure.axes))]
    else:
        usual = structure.quick_sizes if quick else structure.usual_sizes
        sizes = list(sizes_of(structure, size or usual))
    session = start("samplers", device, threads, json, plot, markdown, compare, structure)
    arena = _arena(device, budget, quick, estimate)
    steps = len(sizes) * (len(operations) + 1)
    with busy_neighbours(busy), progress_bar(steps) as progress:
        rows = sampler_benchmark.run(sizes, operations, arena, contenders, progress)
    settings = {"sizes": list(map(str, sizes)), "limits": vars(arena.limits), "busy": busy}
    if estimate is not None:
        settings["estimate"] = {"label": estimate_benchmark.LABEL, **vars(estimate)}
    session.deliver(settings, rows)


@app.command()
def estimates(
    card: GpuCard = None,
    size: Annotated[Sizes | None, _sizes(f"Default {USUAL_SIZES} (quick: {QUICK_SIZES}).")] = None,
    operation: Operations = None,
    contender: WhoTakesPart = None,
    threads: Threads = 2,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """What a GPU would take, by a model on paper: launches are counted, nothing is timed.

    Without --card: A100.
    """
    card = card or CARDS["A100"]
    session = start("estimates", CPU, threads, json, plot, markdown, compare)
    sizes = size or parse_sizes(QUICK_SIZES if quick else USUAL_SIZES)
    operations = [OPERATIONS[name] for name in operation or OPERATIONS]
    contenders = _taking_part(contender, "cuda")
    with progress_bar(len(sizes) * len(operations)) as progress:
        rows = estimate_benchmark.run(sizes, operations, card, contenders, progress)
    labelled = {"label": estimate_benchmark.LABEL, **vars(card)}
    session.deliver({"sizes": list(map(str, sizes)), "card": labelled}, rows)


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
def scaling(
    structure: WhichStructure = LINEAR_CHAIN,
    batch: Annotated[Integers | None, _grid("Default 1,4,16,64,256 (quick: 1,4,16).")] = None,
    length: Annotated[Integers | None, _grid("Default 16,...,1024 (quick: 8,16,32).")] = None,
    longest: Longest = None,
    states: Annotated[Integers | None, _grid("Default 4,...,128 (quick: 4,8,16).")] = None,
    operation: AnyOperations = None,
    base: Annotated[
        Integers | None,
        _grid(
            "B,T,K kept fixed. Default 16,64,16 (quick: 4,16,8); semi-markov: B,T,L,K, "
            "default 8,128,16,16 (quick: 4,16,4,8)."
        ),
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

    Of semi-Markov chains with T, L and K. Without --operation: log-z and gumbel-ffbs.
    """
    form = structure.form.replace("x", ",")
    if base is not None and len(base) != len(structure.axes):
        count = {3: "three", 4: "four"}[len(structure.axes)]
        raise typer.BadParameter(f"{count} numbers are needed: {form}", param_hint="--base")
    axes = {"batch": batch, "length": length, "longest": longest, "states": states}
    given = _given(structure, axes)
    operations = _operations(operation, structure, "log-z", "gumbel-ffbs")
    session = start("scaling", device, threads, json, plot, markdown, compare, structure)
    usual = structure.quick_scaling if quick else structure.scaling
    values = {**usual.values, **given}
    size = structure.size(*(base or usual.base))
    plan = scaling_benchmark.Plan(size, values, operations)
    arena = _arena(device, budget, quick)
    with progress_bar(plan.num_races) as progress:
        rows = scaling_benchmark.run(plan, arena, progress=progress)
    settings = {"base": str(size), "values": values, "limits": vars(arena.limits)}
    if structure.claim is not None:
        settings["claim"] = structure.claim
    session.deliver(settings, rows, scaling_benchmark.exponents(rows))


@app.command()
def ratios(
    structure: WhichStructure = LINEAR_CHAIN,
    rounds: Annotated[int | None, typer.Option(min=1, help="Default 5 (quick: 1).")] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            callback=lambda value: None if value is None else positive(value),
            help="Seconds per side of a ratio and round. Default 5 (quick: 1).",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Default 1 (semi-markov: 2), as the goals are.")
    ] = None,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    markdown: Markdown = None,
    compare: Compare = None,
) -> None:
    """What a structure costs beside others, beside another structure and beside itself: its goals.

    JAX takes part where it is installed.
    """
    threads = threads or ratio_benchmark.THREADS[structure.name]
    session = start("ratios", CPU, threads, json, plot, markdown, compare, structure)
    rounds = rounds or (1 if quick else 5)
    limits = _limits(budget or (1.0 if quick else 5.0), quick)
    cases = ratio_benchmark.CASES[structure.name](quick)
    with progress_bar(len(cases) * (rounds + 1)) as progress:
        rows = ratio_benchmark.run(cases, rounds, limits, progress)
    session.deliver({"rounds": rounds, "threads": threads, "limits": vars(limits)}, rows)


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
    preface: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Markdown to begin with, instead of a title."
        ),
    ] = None,
) -> None:
    """One Markdown page with plots out of results already there."""
    every = [read_results(path, str(path)) for path in files]
    names = [results.name for results in every]
    for results in every:
        if results.command not in SECTIONS:
            raise typer.BadParameter(f"results of an unknown command, {results.command}")
        if names.count(results.name) > 1:
            raise typer.BadParameter(f"more than one file holds results of {results.name}")
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    write_report(every, out, command, preface.read_text() if preface else "# Benchmark results")
    typer.echo(f"wrote {out}")
