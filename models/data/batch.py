"""Sentences as integers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

PAD, START, END, UNKNOWN = range(4)  # the first words of every vocabulary


class Batch(NamedTuple):
    """Sentences with their end mark, padded with `PAD`."""

    words: Tensor  # [B, T]
    lengths: Tensor  # [B]

    @property
    def active(self) -> Tensor:
        """Which words belong to their sentence: bool [B, T]."""
        steps = torch.arange(self.words.shape[1], device=self.words.device)
        return steps < self.lengths.unsqueeze(-1)

    def repeat(self, times: int) -> Batch:
        """[times * B, T]: the whole batch again and again."""
        return Batch(self.words.repeat(times, 1), self.lengths.repeat(times))

    def inputs(self) -> Tensor:
        """[B, T]: the word before each, with the start mark before the first."""
        start = torch.full_like(self.words[:, :1], START)
        return torch.cat([start, self.words[:, :-1]], 1)
