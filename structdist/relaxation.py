"""Gumbel noise, temperatures and the straight-through trick."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

COLDEST = 1e-30  # below, a relaxation is one-hot to the last bit already


def gumbel_noise(
    shape: Sequence[int], like: Tensor, generator: torch.Generator | None = None
) -> Tensor:
    """Independent standard Gumbel noise with the dtype and device of `like`.

    From random integers rather than `torch.rand`: near 0, where the noise is largest and decides
    which rare state is drawn, they resolve probabilities down to 2^-31 (2^-63 in float64).
    """
    kind = {torch.float32: torch.int32, torch.float64: torch.int64}[like.dtype]
    most = torch.iinfo(kind).max
    source: dict[str, Any] = {} if generator is None else {"generator": generator}
    integers = torch.randint(most, tuple(shape), dtype=kind, device=like.device, **source)
    uniform = integers.to(like.dtype).add_(0.5).mul_((1 - torch.finfo(like.dtype).eps) / most)
    return uniform.neg_().log1p_().neg_().log_().neg_()


def uniform_noise(
    shape: Sequence[int], device: torch.device, generator: torch.Generator | None = None
) -> Tensor:
    """Independent float64 noise in [0, 1)."""
    source: dict[str, Any] = {} if generator is None else {"generator": generator}
    return torch.rand(tuple(shape), dtype=torch.float64, device=device, **source)


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of `hard`, to the bit, with the gradient of `soft`."""
    return hard + (soft - soft.detach())


def require_temperature(temperature: float | Tensor) -> float:
    """The temperature as a number; it must be positive and finite, and carries no gradient."""
    if isinstance(temperature, Tensor) and temperature.requires_grad:
        raise ValueError("temperature does not pass gradients on: detach it")
    value = require_number("temperature", temperature)
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"temperature must be positive and finite, got {value}")
    return max(value, COLDEST)


def require_number(name: str, x: float | Tensor) -> float:
    try:
        return float(x)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} must be a number, got {x!r}") from None
