"""Sentences as padded tensors of numbers, with what they are written from, in batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from models.data.sources import EncodedSource
from models.data.vocabulary import PAD, START, UNKNOWN, Vocabulary
from models.errors import SettingError


class Source(NamedTuple):
    """Words to write sentences from, padded with `PAD`: of tables, or of bags of words."""

    keys: Tensor  # [B, N]: the key that each word is a value of
    places: Tensor  # [B, N]: of the word in its value, from 1
    words: Tensor  # [B, N]: as the encoder sees it
    says: Tensor  # [B, N]: as the sentence says it, if it is copied
    needed: Tensor  # [B, N]: 1 where no other words can say the same

    @property
    def active(self) -> Tensor:
        """The places that hold a word: bool [B, N]."""
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
        """The batch with some words of the source [B, N] unknown, also where sentences quote them.

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
        """The batch with each of its tensors changed in the same way."""
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
        return Batch(padded(sentences), lengths)  # type: ignore[arg-type]
    words = padded([pair.words for pair in pairs])
    goals = padded([pair.goals for pair in pairs])
    return Batch(words, lengths, collate_sources([pair.source for pair in pairs]), goals)


def collate_sources(sources: Sequence[EncodedSource]) -> Source:
    parts = zip(*(source[: len(Source._fields)] for source in sources), strict=True)
    return Source(*(padded(part) for part in parts))


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows as one tensor [B, T], with `PAD` beyond each row's end."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], dtype=torch.long)


def in_order(sentences: Sequence[Encoded], batch_size: int) -> list[Batch]:
    """Batches for evaluation: sentences as they come, none left out."""
    starts = range(0, len(sentences), batch_size)
    return [collate(sentences[start : start + batch_size]) for start in starts]


BATCHES_IN_A_POOL = 20  # sentences are sorted by length within pools of so many batches


class BucketedLoader:
    """Batches for training, an epoch at a time.

    The batch of step n is a function of `seed` and n, and the loader asks how many steps are done
    whenever it is iterated: training that is resumed within an epoch goes on with the batches it
    has not seen. Of several processes each takes its share of every batch.
    """

    def __init__(
        self, sentences: Sequence[Encoded], batch_size: int, seed: int = 0, world_size: int = 1
    ) -> None:
        processes = f"{world_size} processes"
        if batch_size < world_size:
            raise SettingError(f"a batch of {batch_size} cannot be shared by {processes}")
        if len(sentences) < world_size:
            raise SettingError(f"{len(sentences)} sentences are too few for {processes}")
        self.sentences, self.batch_size = sentences, batch_size
        self.seed, self.world_size = seed, world_size
        self.follow(lambda: 0)

    def follow(self, steps_done: Callable[[], int], rank: int = 0) -> None:
        """Tell by `steps_done` where to start, and take the share of process `rank`."""
        self.steps_done, self.rank = steps_done, rank

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sentences), self.batch_size)
        return whole + (rest >= self.world_size)  # each process needs a sentence

    def __iter__(self) -> Iterator[Batch]:
        epoch, done = divmod(self.steps_done(), len(self))
        for indices in self.order(epoch)[done:]:
            share = indices[self.rank :: self.world_size]
            yield collate([self.sentences[index] for index in share])

    def order(self, epoch: int) -> list[list[int]]:
        """Indices of the sentences of each batch."""
        shuffler = random.Random(f"{self.seed}-{epoch}")
        lengths = [len(sentence) for sentence in self.sentences]
        indices = list(range(len(lengths)))
        shuffler.shuffle(indices)
        batches: list[list[int]] = []
        pool_size = BATCHES_IN_A_POOL * self.batch_size
        for start in range(0, len(indices), pool_size):
            pool = sorted(indices[start : start + pool_size], key=lengths.__getitem__)
            batches += [pool[i : i + self.batch_size] for i in range(0, len(pool), self.batch_size)]
        batches = batches[: len(self)]
        shuffler.shuffle(batches)
        return batches
