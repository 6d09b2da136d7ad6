"""What came of a question: right, wrong by how much, NaN, an error, or not offered."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.chi_square import goodness_of_fit
from benchmarks.sampler_checks import LEVEL, shown

RIGHT, WRONG, NAN, ERROR, NOT_OFFERED = "right", "wrong", "NaN", "error", "not offered"


@dataclass(frozen=True)
class Outcome:
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return self.kind + (f": {self.detail}" if self.detail else "")


def outcome_of(ask: Callable[[], Outcome]) -> Outcome:
    """What asking gives; an exception is an outcome too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ask()
        except Exception as error:  # a library's fault must not end the run
            lines = str(error).strip().splitlines() or [""]
            return Outcome(ERROR, f"{type(error).__name__}: {lines[0][:90]}")


def close(found: Tensor, exact: Tensor, tolerance: float) -> Outcome:
    """The largest error over the largest entry of the truth, or over 1 if that is less."""
    found, exact = found.detach().double(), exact.double()
    if found.shape != exact.shape:
        return Outcome(WRONG, f"shape {tuple(found.shape)}, not {tuple(exact.shape)}")
    if found.isnan().any():
        return Outcome(NAN)
    same = found == exact  # infinities included
    error = torch.where(same, 0.0, (found - exact).abs()).max()
    relative = (error / exact[exact.isfinite()].abs().max().clamp(min=1.0)).item()
    return Outcome(RIGHT) if relative <= tolerance else Outcome(WRONG, f"off by {relative:.0e}")


def follows(events: Tensor, probabilities: Tensor) -> Outcome:
    """Do one-hot draws [N, T, K] of identical chains follow the probabilities of paths [K^T]?"""
    if events.isnan().any():
        return Outcome(NAN)
    num_states = events.shape[-1]
    place = num_states ** torch.arange(events.shape[1] - 1, -1, -1)
    drawn = (events.argmax(-1) * place).sum(-1)
    counts = torch.bincount(drawn, minlength=len(probabilities))
    p_value = goodness_of_fit(counts, probabilities)
    if p_value >= LEVEL:
        return Outcome(RIGHT)
    distinct = int((counts > 0).sum())
    return Outcome(WRONG, f"{len(drawn)} chains, {distinct} distinct draws, {shown(p_value)}")


def is_zero(gradient: Tensor, tolerance: float = 1e-5) -> Outcome:
    if gradient.isnan().any():
        return Outcome(NAN)
    largest = gradient.abs().max().item()
    return Outcome(RIGHT) if largest <= tolerance else Outcome(WRONG, f"up to {largest:.1g}, not 0")
