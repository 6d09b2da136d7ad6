"""Layers of torch that are quick, and exact, on a CPU too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

LEVELS = 2**16


def _in_full_precision_on_a_cpu(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Under autocast, too: few CPUs have a half-precision LSTM, and torch raises on the others."""

    def run(lstm: Any, inputs: Tensor, *given: Any) -> Any:
        if inputs.device.type != "cpu":
            return forward(lstm, inputs, *given)
        with torch.autocast("cpu", enabled=False):
            return forward(lstm, inputs.to(lstm.weight_ih_l0.dtype), *given)

    return run


class LSTM(nn.LSTM):
    """The LSTM of torch, but in full precision on a CPU."""

    forward = _in_full_precision_on_a_cpu(nn.LSTM.forward)


class BothWays(nn.LSTM):
    """An LSTM that reads sentences of different lengths from either end, batch first.

    It has the parameters of the bidirectional LSTM of torch, and answers as that does for packed
    sentences; but on a CPU, packed ones are read word by word, in twice the time.
    """

    def __init__(self, inputs: int, size: int, layers: int) -> None:
        super().__init__(inputs, size, layers, batch_first=True, bidirectional=True)

    @_in_full_precision_on_a_cpu
    def forward(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Hidden [B, T, 2 H] of inputs [B, T, D]; what it is in the padding means nothing."""
        steps = torch.arange(inputs.shape[1], device=inputs.device)
        turned = (lengths.unsqueeze(-1) - 1 - steps).remainder(len(steps)).unsqueeze(-1)
        options = (True, 1, 0.0, self.training, False, True)  # one layer, one way, batch first
        hidden = inputs
        for layer in range(self.num_layers):
            weights: list[Any] = self.all_weights[2 * layer : 2 * layer + 2]
            start = [hidden.new_zeros(1, len(hidden), self.hidden_size)] * 2
            ahead = torch.lstm(hidden, start, weights[0], *options)[0]
            back = torch.lstm(hidden.take_along_dim(turned, 1), start, weights[1], *options)[0]
            hidden = torch.cat([ahead, back.take_along_dim(turned, 1)], -1)
        return hidden


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
