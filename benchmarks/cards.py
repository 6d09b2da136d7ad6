"""What a GPU costs, on paper: figures for the model that `estimates` prints.

    seconds = launches * launch + steps * step + bytes / bandwidth

It is a model, not a measurement. A launch is what the host spends to issue one small operation of
torch or one kernel of Triton; a step is one turn of a loop over time inside a kernel, where each
needs the one before; bytes are all that kernels are given to read or write, as if nothing stayed in
a cache. Arithmetic is left out: at the sizes of the benchmarks it hides behind the rest. So is
waiting: a look at a number counts as one launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from benchmarks.launches import Launches

# Host time of one launch, on any card. The driver's part is 1 to 3 us (1.3 us in
# meta-pytorch/tritonbench#1016, 2.2 us in the check `kernel_latency` of reframe-hpc). With
# Python, autograd and the dispatcher, an operation of torch is at 5 us or more, so this is the
# low end. A kernel of Triton costs more than one of torch, about 11 us
# (meta-pytorch/tritonbench#1002), which the model does not tell apart: for three kernels, add 20
# us.
LAUNCH_SECONDS = 5e-6

# Cycles of one time step of a sweep: two barriers, one trip through shared memory, K multiply-adds
# of which each waits for the last, an exponential and a logarithm. No more than an assumption, that
# of 0.8 us at the 1.41 GHz of an A100.
STEP_CYCLES = 1128


@dataclass(frozen=True)
class Card:
    name: str
    bandwidth: float  # bytes a second
    launch: float  # seconds
    step: float  # seconds

    def seconds(self, launches: Launches) -> float:
        """The estimate."""
        return (
            launches.count * self.launch
            + launches.steps * self.step
            + launches.num_bytes / self.bandwidth
        )


def _card(name: str, gigabytes: float, gigahertz: float) -> Card:
    return Card(name, gigabytes * 1e9, LAUNCH_SECONDS, STEP_CYCLES / (gigahertz * 1e9))


# Peak memory bandwidth in GB/s and boost clock in GHz, as the makers publish them.
CARDS: Mapping[str, Card] = {
    card.name: card
    for card in (
        _card("T4", 320, 1.59),  # NVIDIA T4 product brief
        _card("V100", 900, 1.53),  # NVIDIA V100 (SXM2) data sheet, Volta white paper
        _card("A100", 1555, 1.41),  # NVIDIA A100 (SXM4, 40 GB) data sheet
        _card("A100-80GB", 2039, 1.41),  # NVIDIA A100 (SXM4, 80 GB) data sheet
        _card("L4", 300, 2.04),  # NVIDIA L4 data sheet and product brief
        _card("RTX4090", 1008, 2.52),  # NVIDIA Ada white paper
        _card("H100", 3350, 1.98),  # NVIDIA H100 (SXM5) data sheet
        _card("H200", 4800, 1.98),  # NVIDIA H200 (SXM) data sheet
        _card("MI300X", 5300, 2.1),  # AMD Instinct MI300X data sheet
    )
}
EXAMPLE = "bandwidth=1.5e12,launch=5e-6,step=0.8e-6"
FIGURES = tuple(field.name for field in fields(Card) if field.name != "name")


class UnknownCardError(ValueError):
    """A text that names no card, and does not describe one."""


def find_card(text: str) -> Card:
    """A card of the table, by its name, or another by all of its figures.

    find_card("A100"), find_card("bandwidth=1.5e12,launch=5e-6,step=0.8e-6")
    """
    if "=" in text:
        return Card("custom card", **_figures(text))
    by_name = {name.lower(): card for name, card in CARDS.items()}
    if text.lower() not in by_name:
        raise UnknownCardError(f"{text!r} is not one of {', '.join(CARDS)}, nor like {EXAMPLE}")
    return by_name[text.lower()]


def _figures(text: str) -> dict[str, float]:
    figures: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in FIGURES or name in figures:
            raise UnknownCardError(f"{text!r}: {name!r} is not one of {', '.join(FIGURES)}, once")
        figures[name] = _positive(text, value)
    missing = [name for name in FIGURES if name not in figures]
    if missing:
        raise UnknownCardError(f"{text!r} lacks {', '.join(missing)}: write it like {EXAMPLE}")
    return figures


def _positive(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise UnknownCardError(f"{text!r}: {value!r} is not a number") from None
    if not 0 < number < float("inf"):
        raise UnknownCardError(f"{text!r}: {value!r} is not positive and finite")
    return number
