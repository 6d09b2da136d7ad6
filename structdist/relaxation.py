"""Gumbel noise, temperatures and the straight-through trick."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def gumbel_noise(
    shape: Sequence[int], like: Tensor, generator: torch.Generator | None = None
) -> Tensor:
    """Independent standard Gumbel noise with the dtype and device of `like`."""
    noise = torch.empty(shape, dtype=like.dtype, device=like.device)
    smallest = torch.finfo(like.dtype).tiny
    return noise.exponential_(generator=generator).clamp_(min=smallest).log_().neg_()


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of `hard`, to the bit, with the gradient of `soft`."""
    return hard + (soft - soft.detach())


def require_temperature(temperature: float | Tensor) -> float:
    """The temperature as a number; it must be positive and finite, and carries no gradient."""
    if isinstance(temperature, Tensor) and temperature.requires_grad:
        raise ValueError("temperature does not pass gradients on: detach it")
    value = float(temperature)
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"temperature must be positive and finite, got {value}")
    return value
