"""Layers of torch that are quick, and exact, on a CPU too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

LEVELS = 2**16


class LSTM(nn.LSTM):
    """The LSTM of torch, batch first; under autocast it stays in full precision on a CPU.

    Few CPUs have a half-precision LSTM, and torch raises on the others.
    """

    def __init__(self, inputs: int, size: int, layers: int = 1, **options: Any) -> None:
        super().__init__(inputs, size, layers, batch_first=True, **options)

    def forward(self, inputs, state=None):  # type: ignore[no-untyped-def]
        if self.weight_ih_l0.device.type != "cpu":
            return super().forward(inputs, state)
        with torch.autocast("cpu", enabled=False):
            return super().forward(inputs.to(self.weight_ih_l0.dtype), state)


class BothWays(nn.LSTM):
    """An LSTM that reads sentences of different lengths from either end, batch first.

    It has the parameters of the bidirectional LSTM of torch, and answers as that does for packed
    sentences; but on a CPU, packed ones are read word by word, in twice the time.
    """

    def __init__(self, inputs: int, size: int, layers: int = 1) -> None:
        super().__init__(inputs, size, layers, batch_first=True, bidirectional=True)

    def forward(self, inputs, lengths):  # type: ignore[no-untyped-def]
        """Hidden [B, T, 2 H] of inputs [B, T, D]; what it is in the padding means nothing."""
        steps = torch.arange(inputs.shape[1], device=inputs.device)
        turned = (lengths.unsqueeze(-1) - 1 - steps).remainder(len(steps)).unsqueeze(-1)
        hidden = inputs
        for layer in range(self.num_layers):
            ahead = self._read(hidden, f"l{layer}")
            back = self._read(hidden.take_along_dim(turned, 1), f"l{layer}_reverse")
            hidden = torch.cat([ahead, back.take_along_dim(turned, 1)], -1)
        return hidden

    def _read(self, inputs: Tensor, layer: str) -> Tensor:
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights = [getattr(self, f"{kind}_{layer}") for kind in kinds]
        device = inputs.device.type
        with torch.autocast(device, enabled=device != "cpu" and torch.is_autocast_enabled(device)):
            inputs = inputs.to(weights[0].dtype) if device == "cpu" else inputs
            start = inputs.new_zeros(1, len(inputs), self.hidden_size)
            options = (True, 1, 0.0, self.training, False, True)
            return torch.lstm(inputs, (start, start), weights, *options)[0]


class Dropout(nn.Module):
    """The dropout of torch, but each 64-bit random number decides for four values.

    On a CPU torch draws a mask one number at a time. The rate is rounded to 1 / 65536.
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
    """Makes whole sentences of [B, T, D] zero, each with probability `rate`."""
    if rate == 0:
        return values
    keep = torch.rand(len(values), 1, 1, device=values.device) >= rate
    return values * keep
