"""Gumbel noise, temperatures and the straight-through trick."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from structdist import ops
from structdist.checks import require_number, require_real
from structdist.ops.autograd import untransformed


class Like(Protocol):
    """Anything with a dtype and a device: a tensor, or parameters."""

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def device(self) -> torch.device: ...


COLDEST = 1e-30  # below, a relaxation is one-hot to the last bit already


def given_or_drawn(
    noise: Tensor | None, shape: torch.Size, like: Like, generator: torch.Generator | None
) -> Tensor:
    """The noise that the caller gave, which must have this shape, or fresh Gumbel noise."""
    if noise is None:
        return ops.gumbel_noise(shape, like.dtype, like.device, generator)
    require_real("noise", noise, like)
    if noise.shape != shape:
        raise ValueError(
            f"noise must be {tuple(shape)} (sample shape, batch shape, noise of one draw), "
            f"got {tuple(noise.shape)}"
        )
    if generator is not None:
        raise ValueError("noise was given, so there is nothing for generator to draw")
    return noise.detach().to(like.dtype)


def uniform_noise(
    shape: Sequence[int], device: torch.device, generator: torch.Generator | None = None
) -> Tensor:
    """Independent float64 noise in [0, 1)."""
    source: dict[str, Any] = {} if generator is None else {"generator": generator}
    return torch.rand(tuple(shape), dtype=torch.float64, device=device, **source)


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of `hard`, to the bit, with the gradient of `soft`, whose shape may be another."""
    if ops.numbers_are_hidden():
        return hard + (soft - soft.detach()).reshape(hard.shape)
    return _apply_straight_through(hard, soft) if soft.requires_grad else hard


class _StraightThrough(torch.autograd.Function):
    """The same without arithmetic."""

    @staticmethod
    def forward(ctx: Any, hard: Tensor, soft: Tensor) -> Tensor:
        ctx.shape = soft.shape
        return hard.view_as(hard)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, grad.reshape(ctx.shape)


_apply_straight_through = untransformed(_StraightThrough)


def require_temperature(
    temperature: float | Tensor, shape: torch.Size, copies: tuple[int, int], validate: bool
) -> float | Tensor:
    """One positive number, or float64 `copies` [S, N] of a tensor that broadcasts to `shape`.

    A tensor keeps its graph; its values are looked at only if `validate`.
    """
    if not isinstance(temperature, Tensor) or _is_plain_number(temperature):
        return max(_require_positive(require_number("temperature", temperature)), COLDEST)
    if not temperature.is_floating_point():
        raise ValueError(f"temperature must be floating point, got {temperature.dtype}")
    if validate:
        lowest, highest = temperature.detach().aminmax() if temperature.numel() else (1.0, 1.0)
        _require_positive(float(lowest))
        _require_positive(float(highest))
    try:
        temperature = temperature.double().expand(shape)
    except RuntimeError:
        raise ValueError(
            f"temperature must broadcast to the sample and batch shape {tuple(shape)}, "
            f"got {tuple(temperature.shape)}"
        ) from None
    return temperature.clamp(min=COLDEST).reshape(copies)


def _is_plain_number(x: Tensor) -> bool:
    return x.dim() == 0 and not (x.requires_grad or x.is_meta or ops.numbers_are_hidden())


def _require_positive(value: float) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"temperature must be positive and finite, got {value}")
    return value
