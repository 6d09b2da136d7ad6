"""Words to states: embeddings and spelling, then an LSTM in both directions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.spans.batches import PADDING, Batch


@dataclass(frozen=True)
class EncoderSizes:
    word: int = 64
    character: int = 24
    spelling: int = 32  # filters over the characters of a word
    hidden: int = 64  # of each direction
    dropout: float = 0.5


class Encoder(nn.Module):
    """States `[B, T, 2 * hidden]` of the words of a batch, learnt from nothing."""

    def __init__(self, num_words: int, num_characters: int, sizes: EncoderSizes) -> None:
        super().__init__()
        self.size = 2 * sizes.hidden
        self.words = nn.Embedding(num_words, sizes.word, padding_idx=PADDING)
        self.characters = nn.Embedding(num_characters, sizes.character, padding_idx=PADDING)
        self.filters = nn.Conv1d(sizes.character, sizes.spelling, kernel_size=3, padding=1)
        inputs = sizes.word + sizes.spelling
        self.lstm = nn.LSTM(inputs, sizes.hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, batch: Batch) -> Tensor:
        inputs = torch.cat([self.words(batch.words), self._spelling(batch)], -1)
        packed = pack_padded_sequence(
            self.dropout(inputs), batch.lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.dropout(states)

    def _spelling(self, batch: Batch) -> Tensor:
        """[B, T, S]: the strongest answer of each filter in each word."""
        found = self.filters(self.characters(batch.characters).mT)  # [W, S, C]
        return found.amax(-1).relu()[batch.spelling]
