"""Checks of arguments, whose errors name the argument and say what was wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def require_tensor(name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a tensor, got {type(x).__name__}")


def require_real(name: str, x: Tensor, like: Any) -> None:
    """Raise unless `x` is a floating-point tensor on the device of another."""
    require_tensor(name, x)
    if not x.is_floating_point():
        raise ValueError(f"{name} must be floating point, got {x.dtype}")
    if x.device != like.device:
        raise ValueError(f"{name} is on {x.device}, but the other scores are on {like.device}")


def require_not_complex(name: str, x: Tensor) -> None:
    require_tensor(name, x)
    if x.is_complex():
        raise ValueError(f"{name} must be real, got {x.dtype}")


def require_bool(name: str, x: Tensor) -> None:
    require_tensor(name, x)
    if x.dtype != torch.bool:
        raise ValueError(f"{name} must be bool, got {x.dtype}")


def require_integers(name: str, x: Tensor) -> None:
    require_tensor(name, x)
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise ValueError(f"{name} must be integers, got {x.dtype}")


def first_step(wrong: Tensor) -> str:
    """Where the first step is, of those [*S, *B, T] that are wrong."""
    *index, step = wrong.nonzero()[0].tolist()
    return f"step {step}" + (f" of index {tuple(index)}" if index else "")


def require_range(
    name: str, x: Tensor, lowest: int, highest: int, active: Tensor, meaning: str = ""
) -> None:
    """Raise unless integers [..., T] lie in a range at every active step [*B, T]."""
    wrong = ((x < lowest) | (x > highest)) & active
    if wrong.any():
        raise ValueError(
            f"{name} must lie in {lowest}..{highest} within the lengths{meaning}, "
            f"got {x.expand(wrong.shape)[wrong][0]} at {first_step(wrong)}"
        )


def require_number(name: str, x: float | Tensor) -> float:
    try:
        return float(x)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} must be a number, got {x!r}") from None


def require_count(name: str, x: object) -> None:
    if isinstance(x, bool) or not isinstance(x, int) or x < 1:
        raise ValueError(f"{name} must be an integer from 1 up, got {x!r}")


def require_sample_shape(sample_shape: Sequence[int]) -> torch.Size:
    try:
        shape = torch.Size(sample_shape)
    except TypeError:
        raise ValueError(f"sample_shape must be a tuple of sizes, got {sample_shape!r}") from None
    if any(size < 0 for size in shape):
        raise ValueError(f"sample_shape must not hold negative sizes, got {tuple(shape)}")
    return shape


def require_log_probabilities(name: str, x: Tensor) -> None:
    """Raise unless the last dimension holds the logs of probabilities that sum to one."""
    total = x.detach().double().logsumexp(-1)
    slack = 1e-3 if x.dtype == torch.float64 else 3e-2  # that of half precision, even cast up
    if not (total.abs() <= slack).all():
        worst = total.flatten()[total.abs().nan_to_num(torch.inf).argmax()].item()
        raise ValueError(
            f"{name} must hold log probabilities, whose exp sums to 1 over the last dimension "
            f"(take log_softmax), got a log sum of {worst:.3g}"
        )
