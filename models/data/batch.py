"""Sentences as integers, and what they are written from."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

PAD, START, END, UNKNOWN = range(4)  # the first words of every vocabulary


class Source(NamedTuple):
    """Words to write sentences from, padded with `PAD`: of tables, or of bags of words."""

    keys: Tensor  # [B, N]: the key that each word is a value of
    places: Tensor  # [B, N]: of the word in its value, from 1
    words: Tensor  # [B, N]: as the encoder sees it
    says: Tensor  # [B, N]: as the sentence says it, if it is copied
    needed: Tensor  # [B, N]: 1 where no other words can say the same

    @property
    def active(self) -> Tensor:
        """Where there is a word: bool [B, N]."""
        return self.says != PAD


class Batch(NamedTuple):
    """Sentences with their end mark, padded with `PAD`."""

    words: Tensor  # [B, T]
    lengths: Tensor  # [B]
    source: Source | None = None
    goals: Tensor | None = None  # [B, T]: see `target`

    @property
    def active(self) -> Tensor:
        """Which words belong to their sentence: bool [B, T]."""
        steps = torch.arange(self.words.shape[1], device=self.words.device)
        return steps < self.lengths.unsqueeze(-1)

    @property
    def target(self) -> Tensor:
        """The words to predict [B, T].

        A word that the vocabulary lacks but the source has is not unknown there: it has a number
        beyond the vocabulary, the same as in `Source.says`, and can be copied.
        """
        return self.words if self.goals is None else self.goals

    def repeat(self, times: int) -> Batch:
        """[times * B, T]: the whole batch again and again."""
        source = self.source and Source(*(part.repeat(times, 1) for part in self.source))
        goals = None if self.goals is None else self.goals.repeat(times, 1)
        return Batch(self.words.repeat(times, 1), self.lengths.repeat(times), source, goals)

    def to(self, device: torch.device) -> Batch:
        source = self.source and Source(*(part.to(device) for part in self.source))
        goals = None if self.goals is None else self.goals.to(device)
        return Batch(self.words.to(device), self.lengths.to(device), source, goals)

    def hiding(self, hidden: Tensor) -> Batch:
        """With some words of the source [B, N] unknown, also where the sentence quotes them.

        They stay what is to be predicted.
        """
        if self.source is None:
            raise ValueError("a batch without a source has none of its words to hide")
        quotes = self.target.unsqueeze(-1) == self.source.says.unsqueeze(1)  # [B, T, N]
        quoted = (quotes & hidden.unsqueeze(1)).any(-1)
        source = self.source._replace(words=self.source.words.masked_fill(hidden, UNKNOWN))
        return Batch(self.words.masked_fill(quoted, UNKNOWN), self.lengths, source, self.target)

    def inputs(self) -> Tensor:
        """[B, T]: the word before each, with the start mark before the first."""
        start = torch.full_like(self.words[:, :1], START)
        return torch.cat([start, self.words[:, :-1]], 1)
