"""Sentences as tensors: numbers of words, and the characters of each distinct word."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.spans.corpus import Sentence

PADDING, UNKNOWN = 0, 1
FEWEST = 2  # times that a word must have been seen to be known
MOST_CHARACTERS = 20  # of a word that are looked at


@dataclass(frozen=True)
class Batch:
    sentences: Sequence[Sentence]
    words: Tensor  # [B, T]
    lengths: Tensor  # [B]
    characters: Tensor  # [W, C], of the distinct words of the batch
    spelling: Tensor  # [B, T]: which row of the characters


class Vocabulary:
    """Numbers of the words, in lower case, and of the characters of training sentences."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        counts = Counter(word.lower() for s in sentences for word in s.words)
        words = sorted(word for word, count in counts.items() if count >= FEWEST)
        self.words = {word: number for number, word in enumerate(words, start=UNKNOWN + 1)}
        characters = sorted(
            {character for s in sentences for word in s.words for character in word}
        )
        self.characters = {c: number for number, c in enumerate(characters, start=UNKNOWN + 1)}

    @property
    def sizes(self) -> tuple[int, int]:
        """How many numbers of words and of characters there are."""
        return len(self.words) + UNKNOWN + 1, len(self.characters) + UNKNOWN + 1

    def batch(self, sentences: Sequence[Sentence]) -> Batch:
        distinct = {
            word: row for row, word in enumerate({w: 0 for s in sentences for w in s.words})
        }
        return Batch(
            sentences,
            _pad([[self.words.get(w.lower(), UNKNOWN) for w in s.words] for s in sentences]),
            torch.tensor([len(s.words) for s in sentences]),
            _pad(
                [[self.characters.get(c, UNKNOWN) for c in w[:MOST_CHARACTERS]] for w in distinct]
            ),
            _pad([[distinct[word] for word in s.words] for s in sentences]),
        )

    def batches(self, sentences: Sequence[Sentence], size: int) -> Iterator[Batch]:
        """In the order of the sentences."""
        for first in range(0, len(sentences), size):
            yield self.batch(sentences[first : first + size])

    def shuffled(
        self, sentences: Sequence[Sentence], size: int, generator: random.Random
    ) -> Iterator[Batch]:
        """In a random order, sentences of about one length together."""
        noisy = sorted(sentences, key=lambda s: len(s.words) + 3 * generator.random())
        groups = [noisy[first : first + size] for first in range(0, len(noisy), size)]
        generator.shuffle(groups)
        yield from map(self.batch, groups)


def _pad(rows: list[list[int]]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
