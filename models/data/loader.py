"""Batches of sentences of similar length, in an order that depends on the step alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.data.batch import PAD, Batch, Source
from models.data.sources import EncodedSource
from models.data.vocabulary import Vocabulary
from models.errors import SettingError

BATCHES_IN_A_POOL = 20  # sentences are sorted by length within pools of so many batches


@dataclass(frozen=True)
class EncodedPair:
    """A sentence and what it is written from."""

    words: list[int]
    source: EncodedSource
    goals: list[int]  # as `Batch.goals`

    def __len__(self) -> int:
        return len(self.words)


Sentence = Sequence[int] | EncodedPair


def collate(sentences: Sequence[Sentence]) -> Batch:
    """Pad encoded sentences, and their sources if they have any, to the longest."""
    pairs = [sentence for sentence in sentences if isinstance(sentence, EncodedPair)]
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    if not pairs:
        return Batch(padded([list(s) for s in sentences]), lengths)  # type: ignore[arg-type]
    words = padded([pair.words for pair in pairs])
    goals = padded([pair.goals for pair in pairs])
    return Batch(words, lengths, collate_sources([pair.source for pair in pairs]), goals)


def collate_sources(sources: Sequence[EncodedSource]) -> Source:
    parts = zip(*(source[: len(Source._fields)] for source in sources), strict=True)
    return Source(*(padded(part) for part in parts))


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """[B, T], with `PAD` beyond each row's end."""
    result = torch.full((len(rows), max(map(len, rows))), PAD)
    for row, numbers in zip(result, rows, strict=True):
        row[: len(numbers)] = torch.tensor(numbers)
    return result


def encode(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary) -> list[list[int]]:
    return [vocabulary.encode(words) for words in sentences]


def in_order(sentences: Sequence[Sentence], batch_size: int) -> list[Batch]:
    """For evaluation: as they come, none left out."""
    starts = range(0, len(sentences), batch_size)
    return [collate(sentences[start : start + batch_size]) for start in starts]


class BucketedLoader:
    """Batches for training, an epoch at a time.

    The batch of step n is a function of `seed` and n, and the loader asks how many steps are done
    whenever it is iterated: training that is resumed within an epoch goes on with the batches it
    has not seen. Of several processes each takes its share of every batch.
    """

    def __init__(
        self,
        sentences: Sequence[Sentence],
        batch_size: int,
        seed: int = 0,
        world_size: int = 1,
    ) -> None:
        if batch_size < world_size:
            raise SettingError(
                f"a batch of {batch_size} cannot be shared by {world_size} processes"
            )
        if len(sentences) < world_size:
            raise SettingError(f"{len(sentences)} sentences are too few for {world_size} processes")
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
        indices = list(range(len(self.sentences)))
        shuffler.shuffle(indices)
        batches: list[list[int]] = []
        pool_size = BATCHES_IN_A_POOL * self.batch_size
        for start in range(0, len(indices), pool_size):
            pool = sorted(indices[start : start + pool_size], key=self._length)
            batches += [pool[i : i + self.batch_size] for i in range(0, len(pool), self.batch_size)]
        batches = batches[: len(self)]
        shuffler.shuffle(batches)
        return batches

    def _length(self, index: int) -> int:
        return len(self.sentences[index])
