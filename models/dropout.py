"""Dropout whose masks are cheap on a CPU, where torch draws them one number at a time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEVELS = 2**16


class Dropout(nn.Module):
    """As `nn.Dropout`; each 64-bit random number decides for four values.

    The rate is rounded to a multiple of 1 / 65536.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, not {rate}")
        self.threshold = round(rate * LEVELS)

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or self.threshold == 0:
            return values
        draws = torch.empty(-(-values.numel() // 4), dtype=torch.int64, device=values.device)
        draws.random_(-(2**63), None)
        levels = draws.view(torch.int16)[: values.numel()].view(values.shape)
        keep = (levels >= self.threshold - LEVELS // 2).to(values.dtype)
        return values * keep.mul_(LEVELS / (LEVELS - self.threshold))


def drop_sentences(values: Tensor, rate: float) -> Tensor:
    """Make whole sentences of [B, T, D] zero, each with probability `rate`."""
    if rate == 0:
        return values
    keep = torch.rand(len(values), 1, 1, device=values.device) >= rate
    return values * keep
