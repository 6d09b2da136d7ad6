"""Options of the command line: their types, and clear messages for bad ones (exit code 2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks.cards import CARDS, EXAMPLE, Card, UnknownCardError, find_card
from benchmarks.problem import Size
from benchmarks.results import Results, ResultsError, load
from benchmarks.structure import Structure
from benchmarks.structures import LINEAR_CHAIN, STRUCTURES

NO_CUDA = (
    "torch finds no CUDA device here; for estimates instead of times, leave --device out: "
    "python -m benchmarks samplers --estimate A100"
)


class Integers(tuple[int, ...]):
    """Positive integers, separated by commas."""

    def __str__(self) -> str:
        return ",".join(map(str, self))


class Numbers(tuple[float, ...]):
    """Positive numbers, separated by commas."""


class Names(tuple[str, ...]):
    """Names, separated by commas."""


def parse_integers(text: str) -> Integers:
    try:
        values = Integers(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of integers like 8,100") from None
    if min(values) < 1:
        raise typer.BadParameter(f"{text!r}: every value must be 1 or more")
    return values


class Sizes(tuple[Size, ...]):
    """Sizes of one structure, separated by commas in text."""


def parse_sizes(text: str) -> Sizes:
    """Of linear chains."""
    return sizes_of(LINEAR_CHAIN, text)


def sizes_of(structure: Structure, text: str) -> Sizes:
    sizes = []
    for part in text.split(","):
        numbers = part.split("x")
        if len(numbers) != len(structure.axes):
            example = structure.usual_sizes.split(",")[0]
            raise typer.BadParameter(f"{part!r} is not a size {structure.form} like {example}")
        sizes.append(structure.size(*parse_integers(",".join(numbers))))
    return Sizes(sizes)


def parse_structure(given: str | Structure) -> Structure:
    """By its name; a default is one already."""
    name = str(given)
    if name not in STRUCTURES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(STRUCTURES)}")
    return STRUCTURES[name]


def parse_numbers(text: str) -> Numbers:
    try:
        values = Numbers(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of numbers like 0.5,1") from None
    if not all(0 < value < float("inf") for value in values):
        raise typer.BadParameter(f"{text!r}: every value must be positive and finite")
    return values


def names_among(known: Collection[str]) -> Callable[[str], Names]:
    """A parser of names out of `known`; `all` stands for all of them."""

    def parse_names(text: str) -> Names:
        names = Names(known) if text == "all" else Names(text.split(","))
        for name in names:
            if name not in known:
                raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}")
        return names

    return parse_names


def parse_device(text: str) -> torch.device:
    try:
        device = torch.device(text)
    except RuntimeError:
        raise typer.BadParameter(f"{text!r} is not a device") from None
    if device.type not in ("cpu", "cuda"):
        raise typer.BadParameter(f"{text!r}: the device must be cpu or cuda")
    if device.type == "cuda" and not torch.cuda.is_available():
        typer.echo(NO_CUDA, err=True)
        raise typer.Exit(2)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise typer.BadParameter(f"there are only {torch.cuda.device_count()} CUDA devices")
    return device


def parse_card(text: str) -> Card:
    try:
        return find_card(text)
    except UnknownCardError as error:
        raise typer.BadParameter(str(error)) from None


def writable(path: Path | None) -> Path | None:
    """Known before the work starts, not after."""
    if path is None:
        return None
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a directory")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise typer.BadParameter(f"{path} cannot be written")
    return path


def writable_png(path: Path | None) -> Path | None:
    if path is not None and path.suffix != ".png":
        raise typer.BadParameter(f"{path} must end in .png")
    return writable(path)


def read_results(path: Path, option: str) -> Results:
    try:
        return load(path)
    except ResultsError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def positive(value: float) -> float:
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not positive and finite")
    return value


WhichStructure = Annotated[
    Structure,
    typer.Option(
        "--structure",
        parser=parse_structure,
        metavar="NAME",
        help=f"What chains: {', '.join(STRUCTURES)}.",
    ),
]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads torch may use.")]
Busy = Annotated[
    int, typer.Option(min=0, help="Processes that keep a core busy each, all the while.")
]
Device = Annotated[
    torch.device, typer.Option(parser=parse_device, metavar="DEVICE", help="cpu or cuda.")
]
GpuCard = Annotated[
    Card | None,
    typer.Option(
        parser=parse_card,
        metavar="CARD",
        help=f"A GPU to estimate for: {', '.join(CARDS)}, or one by its figures in bytes and "
        f"seconds, {EXAMPLE}.",
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Small defaults: under a minute.")]
Json = Annotated[
    Path | None, typer.Option("--json", callback=writable, help="Write rows and environment.")
]
Plot = Annotated[Path | None, typer.Option("--plot", callback=writable_png, help="A .png file.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", callback=writable, help="Write the tables.")
]
Compare = Annotated[
    Path | None, typer.Option("--compare", help="JSON of an earlier run: print ratios to it.")
]
Budget = Annotated[
    float | None,
    typer.Option(
        callback=lambda value: None if value is None else positive(value),
        help="Seconds per contender, operation and size. Default 10 (quick: 1).",
    ),
]
