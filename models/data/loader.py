"""Batches for training: of similar lengths, in an order that depends on the step alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from models.data.batches import Batch, Encoded, collate
from models.errors import SettingError

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
