"""Sentences as padded tensors of numbers, and what they are written from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from models.data.sources import EncodedSource
from models.data.vocabulary import PAD, START, UNKNOWN, Vocabulary


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
        """The whole batch again and again [times * B, T]."""
        return self._changed(lambda part: part.repeat(times, *[1] * (part.dim() - 1)))

    def to(self, device: torch.device) -> Batch:
        return self._changed(lambda part: part.to(device))

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
        """The word before each [B, T], with the start mark before the first."""
        start = torch.full_like(self.words[:, :1], START)
        return torch.cat([start, self.words[:, :-1]], 1)

    def _changed(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """With every tensor of it changed in the same way."""
        source = self.source and Source(*map(change, self.source))
        goals = None if self.goals is None else change(self.goals)
        return Batch(change(self.words), change(self.lengths), source, goals)


@dataclass(frozen=True)
class EncodedPair:
    """A sentence and what it is written from."""

    words: list[int]
    source: EncodedSource
    goals: list[int]  # as `Batch.goals`

    def __len__(self) -> int:
        return len(self.words)


Encoded = Sequence[int] | EncodedPair  # a sentence, with a source or without


def encode(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary) -> list[list[int]]:
    return [vocabulary.encode(words) for words in sentences]


def collate(sentences: Sequence[Encoded]) -> Batch:
    """Pads encoded sentences, and their sources if they have any, to the longest."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    pairs = [sentence for sentence in sentences if isinstance(sentence, EncodedPair)]
    if not pairs:
        return Batch(padded([list(s) for s in sentences]), lengths)  # type: ignore[arg-type]
    words = padded([pair.words for pair in pairs])
    goals = padded([pair.goals for pair in pairs])
    return Batch(words, lengths, collate_sources([pair.source for pair in pairs]), goals)


def collate_sources(sources: Sequence[EncodedSource]) -> Source:
    parts = zip(*(source[: len(Source._fields)] for source in sources), strict=True)
    return Source(*(padded(part) for part in parts))


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows as one tensor [B, T], with `PAD` beyond each row's end."""
    result = torch.full((len(rows), max(map(len, rows))), PAD)
    for row, numbers in zip(result, rows, strict=True):
        row[: len(numbers)] = torch.tensor(numbers)
    return result


def in_order(sentences: Sequence[Encoded], batch_size: int) -> list[Batch]:
    """Batches for evaluation: sentences as they come, none left out."""
    starts = range(0, len(sentences), batch_size)
    return [collate(sentences[start : start + batch_size]) for start in starts]
