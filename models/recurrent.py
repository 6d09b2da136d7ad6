"""LSTMs under mixed precision."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class LSTM(nn.LSTM):
    """As `nn.LSTM`, batch first; under autocast it stays in full precision on a CPU.

    Few CPUs have a half-precision LSTM, and torch raises on the others.
    """

    def __init__(self, inputs: int, size: int, layers: int = 1, **options: Any) -> None:
        super().__init__(inputs, size, layers, batch_first=True, **options)

    def forward(self, inputs, state=None):  # type: ignore[no-untyped-def]
        if self.weight_ih_l0.device.type != "cpu":
            return super().forward(inputs, state)
        with torch.autocast("cpu", enabled=False):
            return super().forward(inputs.to(self.weight_ih_l0.dtype), state)
