"""Is the answer right? Asked of every contender before its time is shown.

- Values and their gradients: against the reference recurrences in float64, at the size that is
  timed; the largest error, relative to the largest entry, must be within a stated tolerance. It
  leaves room for float32 in log space, which loses about eps |log Z| sqrt(T): enough for a
  hundred steps, not for a thousand, where plain log-space marginals are off by a per cent.
- Best paths: their score must be the best, within the tolerance (so ties are fine).
- Samplers: see `sampler_checks`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.contenders import Contender, Work, forward, forward_backward
from benchmarks.operations import Kind, Operation
from benchmarks.ours import REFERENCE, whole_chains
from benchmarks.problem import Inputs, Size, make_inputs
from benchmarks.sampler_checks import check_sampler
from structdist.ops import reference

GRADIENT_TOLERANCE = 2e-3
CHUNK_ENTRIES = 2**23  # of a [b, T, K, K] table that autograd keeps for the reference

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
    try:
        if operation.kind in (Kind.EXACT_SAMPLER, Kind.BIASED_SAMPLER):
            return Verdict(*check_sampler(contender.works, operation, device))
        inputs = make_inputs(size, device, SEED)
        work = contender.works[operation.name]
        if operation.kind is Kind.BEST_PATH:
            return Verdict(check_best_path(work, inputs, operation.tolerance))
        return Verdict(check_value(work, operation, inputs))
    except Exception as error:  # a rival's fault must not end the run
        return Verdict(raised(error))


def raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}".splitlines()[0]


def check_value(work: Work, operation: Operation, inputs: Inputs) -> str | None:
    exact, truth = inputs.to(torch.float64), REFERENCE[operation.name]
    error = relative_error(forward(work, inputs), _in_chunks(forward, truth, exact))
    if not error <= operation.tolerance:
        return f"value off by {error:.1e}, tolerance {operation.tolerance:.0e}"
    gradients = forward_backward(work, inputs)
    by_emissions, by_transitions = _reference_gradients(truth, exact)
    errors = {
        "emissions": relative_error(gradients[0], by_emissions),
        "transitions": relative_error(gradients[1], by_transitions),
    }
    for name, error in errors.items():
        if not error <= GRADIENT_TOLERANCE:
            return f"gradient by {name} off by {error:.1e}, tolerance {GRADIENT_TOLERANCE:.0e}"
    return None


def check_best_path(work: Work, inputs: Inputs, tolerance: float) -> str | None:
    exact = inputs.to(torch.float64)
    chain = whole_chains(exact.emissions, exact.transitions)
    scores = reference.path_scores(chain, forward(work, inputs).unsqueeze(0))[0]
    error = relative_error(scores, reference.viterbi(chain).score)
    if not error <= tolerance:
        return f"score of the path off the best by {error:.1e}, tolerance {tolerance:.0e}"
    return None


def relative_error(value: Tensor, truth: Tensor) -> float:
    """Largest error over largest entry of the truth, or over 1e-3 where that is smaller."""
    if value.shape != truth.shape:
        raise ValueError(f"shape is {tuple(value.shape)}, not {tuple(truth.shape)}")
    largest = truth.abs().max().clamp(min=1e-3)
    return ((value.double() - truth).abs().max() / largest).item()


def _chunks(inputs: Inputs) -> list[Inputs]:
    """Batch items by so many that the reference's tables stay small."""
    batch, length, states = inputs.emissions.shape
    step = max(1, CHUNK_ENTRIES // (length * states**2))
    return [inputs.items(i, i + step) for i in range(0, batch, step)]


def _in_chunks(run: Callable[[Work, Inputs], Tensor], work: Work, inputs: Inputs) -> Tensor:
    return torch.cat([run(work, part) for part in _chunks(inputs)])


def _reference_gradients(work: Work, inputs: Inputs) -> tuple[Tensor, Tensor]:
    parts = [forward_backward(work, part) for part in _chunks(inputs)]
    by_emissions = torch.cat([emissions for emissions, _ in parts])
    by_transitions = torch.stack([transitions for _, transitions in parts]).sum(0)
    return by_emissions, by_transitions
