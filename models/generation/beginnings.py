"""Sentences that are being written."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from models.data.vocabulary import END, PAD


class Written(NamedTuple):
    words: list[int]  # without the end mark; beyond the vocabulary for words of the source alone
    states: list[int]  # of each word
    log_prob: float  # log p(x, z | source), end mark and its state included
    ended: bool  # or it was cut


class Beginnings(NamedTuple):
    """The beginnings of R sentences; those that have ended grow by padding."""

    words: Tensor  # [R, t]
    states: Tensor  # [R, t]
    log_probs: Tensor  # [R], double
    ended: Tensor  # bool [R]

    @classmethod
    def empty(cls, rows: int, device: torch.device) -> Beginnings:
        nothing = torch.empty(rows, 0, dtype=torch.long, device=device)
        log_probs = torch.zeros(rows, dtype=torch.double, device=device)
        return cls(nothing, nothing, log_probs, torch.zeros_like(log_probs, dtype=torch.bool))

    def longer(self, words: Tensor, states: Tensor, log_probs: Tensor) -> Beginnings:
        """With a word and a state more [R]; `log_probs` are those of the whole."""
        words = words.masked_fill(self.ended, PAD)
        return Beginnings(
            torch.cat([self.words, words.unsqueeze(1)], 1),
            torch.cat([self.states, states.unsqueeze(1)], 1),
            torch.where(self.ended, self.log_probs, log_probs.double()),
            self.ended | (words == END),
        )

    def select(self, rows: Tensor) -> Beginnings:
        return Beginnings(*(part[rows] for part in self))

    def lengths(self) -> Tensor:
        """How many words each has [R], the end mark among them."""
        return (self.words != PAD).sum(-1)

    def written(self) -> list[Written]:
        found = []
        for words, states, log_prob, ended in zip(*(part.tolist() for part in self), strict=True):
            length = words.index(END) if ended else len(words)
            found.append(Written(words[:length], states[:length], log_prob, ended))
        return found
