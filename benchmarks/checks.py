"""Is the answer right? Asked of every contender before its time is shown.

- Values and their gradients: against the reference recurrences in float64, at the size that is
  timed; the largest error, relative to the largest entry, must be within a stated tolerance. It
  leaves room for float32 in log space, which loses about eps |log Z| sqrt(T): enough for a
  hundred steps, not for a thousand, where plain log-space marginals are off by a per cent.
- Best paths: their score must be the best, within the tolerance (so ties are fine).
- Samplers: see `sampler_checks`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.contenders import Contender, Work, forward, forward_backward
from benchmarks.operations import Kind, Operation
from benchmarks.problem import Inputs, Size, make_inputs
from benchmarks.sampler_checks import check_sampler
from benchmarks.structure import Structure
from benchmarks.structures import structure_of

GRADIENT_TOLERANCE = 2e-3
CHUNK_ENTRIES = 2**23  # of a table that autograd keeps for the reference

SEED = 20


@dataclass(frozen=True)
class Verdict:
    failure: str | None = None  # what was wrong
    note: str | None = None  # what a reader should know besides

    @property
    def passed(self) -> bool:
        return self.failure is None


def check(contender: Contender, operation: Operation, size: Size, device: torch.device) -> Verdict:
    """The verdict on one contender and operation; an exception is a failure too."""
    structure = structure_of(size)
    try:
        if operation.kind in (Kind.EXACT_SAMPLER, Kind.BIASED_SAMPLER):
            return Verdict(*check_sampler(contender.works, operation, structure, device))
        inputs = make_inputs(size, device, SEED)
        work = contender.works[operation.name]
        if operation.kind is Kind.BEST_PATH:
            return Verdict(check_best_path(work, structure, inputs, operation.tolerance))
        truth = Truth(structure.reference[operation.name], inputs, structure.entries(size))
        return Verdict(check_value(work, operation, inputs, truth))
    except Exception as error:  # a rival's fault must not end the run
        return Verdict(raised(error))


def raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}".splitlines()[0]


class Truth:
    """The reference in float64, a few chains at a time, so that its tables stay small."""

    def __init__(self, work: Work, inputs: Inputs, entries: int) -> None:
        """Tables have so many `entries` for one chain."""
        exact, batch = inputs.to(torch.float64), len(inputs.emissions)
        step = max(1, CHUNK_ENTRIES // entries)
        self.work = work
        self.parts = [exact.items(i, i + step) for i in range(0, batch, step)]
        self.shared = [name in inputs.SHARED for name in inputs.SCORES]

    def value(self) -> Tensor:
        return torch.cat([forward(self.work, part) for part in self.parts])

    def gradients(self) -> list[Tensor]:
        by_part = [forward_backward(self.work, part) for part in self.parts]
        return [
            torch.stack(grads).sum(0) if shared else torch.cat(grads)
            for shared, grads in zip(self.shared, zip(*by_part, strict=True), strict=True)
        ]


def check_value(work: Work, operation: Operation, inputs: Inputs, truth: Truth) -> str | None:
    error = relative_error(forward(work, inputs), truth.value())
    if not error <= operation.tolerance:
        return f"value off by {error:.1e}, tolerance {operation.tolerance:.0e}"
    gradients = zip(forward_backward(work, inputs), truth.gradients(), strict=True)
    for name, (found, exact) in zip(inputs.SCORES, gradients, strict=True):
        error = relative_error(found, exact)
        if not error <= GRADIENT_TOLERANCE:
            return f"gradient by {name} off by {error:.1e}, tolerance {GRADIENT_TOLERANCE:.0e}"
    return None


def check_best_path(
    work: Work, structure: Structure, inputs: Inputs, tolerance: float
) -> str | None:
    exact = inputs.to(torch.float64)
    scores = structure.path_scores(exact, forward(work, inputs))
    error = relative_error(scores, structure.best_scores(exact))
    if not error <= tolerance:
        return f"score of the path off the best by {error:.1e}, tolerance {tolerance:.0e}"
    return None


def relative_error(value: Tensor, truth: Tensor) -> float:
    """Largest error over largest entry of the truth, or over 1e-3 where that is smaller."""
    if value.shape != truth.shape:
        raise ValueError(f"shape is {tuple(value.shape)}, not {tuple(truth.shape)}")
    largest = truth.abs().max().clamp(min=1e-3)
    return ((value.double() - truth).abs().max() / largest).item()
