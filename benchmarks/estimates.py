"""`python -m benchmarks estimates`: what each contender would take on a GPU, by a model on paper.

Nothing is timed. Launches, time steps and bytes are counted in dry runs (see `counting`), and a
card's figures make seconds of them (see `cards`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace

import torch

from benchmarks.cards import Card
from benchmarks.contenders import Contender
from benchmarks.counting import Counted, NotCountedError, count
from benchmarks.operations import Operation
from benchmarks.problem import Size
from benchmarks.results import Record

LABEL = "estimate, not measured"
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Estimate:
    """Seconds on a card, by the model."""

    card: str
    forward: float
    forward_backward: float | None
    label: str = LABEL

    @classmethod
    def of(cls, launches: Counted, card: Card) -> Estimate:
        both = launches.forward_backward
        seconds = None if both is None else card.seconds(both)
        return cls(card.name, card.seconds(launches.forward), seconds)


@dataclass(frozen=True)
class Row:
    operation: str
    contender: str
    batch: int
    length: int
    states: int
    status: str = "ok"  # or "skipped"
    detail: str | None = None  # why it was skipped
    launches: Counted | None = None
    estimate: Estimate | None = None


def run(
    sizes: Iterable[Size],
    operations: Sequence[Operation],
    card: Card,
    contenders: Sequence[Contender],
    progress: Callable[[str], object] = lambda _: None,
) -> list[Record]:
    """Rows, as plain records. `progress` hears of each operation and size before it starts."""
    rows: list[Row] = []
    for size in sizes:
        for operation in operations:
            progress(f"{operation.name}, {size}")
            offering = [c for c in contenders if operation.name in c.works]
            rows += [estimate(contender, operation, size, card) for contender in offering]
    return [asdict(row) for row in rows]


def estimate(contender: Contender, operation: Operation, size: Size, card: Card) -> Row:
    row = Row(operation.name, contender.name, size.batch, size.length, size.states)
    try:
        launches = count(contender, operation, size, CPU)
    except NotCountedError as error:
        return replace(row, status="skipped", detail=str(error))
    return replace(row, launches=launches, estimate=Estimate.of(launches, card))
