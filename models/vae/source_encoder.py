"""The source as the decoder reads it: a memory to look things up in, and to copy from."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from models.config import ModelConfig
from models.data.batches import Source
from models.data.vocabulary import PAD, UNKNOWN
from models.vae.layers import Dropout

LAST_PLACE = 7  # in a value; words beyond count as there

Carry = tuple[Tensor, Tensor]  # what an LSTM hands from step to step, each [layers, B, H]


class Memory(NamedTuple):
    items: Tensor  # [B, N, H]
    active: Tensor  # bool [B, N]
    says: Tensor  # [B, N]
    start: Carry  # what the decoder starts with

    def select(self, rows: Tensor) -> Memory:
        """The memory of those sentences of the batch, in that order."""
        hidden, cell = self.start
        start = (hidden[:, rows], cell[:, rows])
        return Memory(self.items[rows], self.active[rows], self.says[rows], start)


class SourceEncoder(nn.Module):
    """Each item is encoded by its key and word alone: a table is a set, and so is a bag."""

    def __init__(self, config: ModelConfig, num_keys: int) -> None:
        super().__init__()
        size = config.hidden_size
        self.layers, self.hide_rate = config.num_layers, config.source_dropout
        self.keys = nn.Embedding(num_keys, size, padding_idx=PAD)
        self.places = nn.Embedding(LAST_PLACE + 1, size, padding_idx=PAD)
        self.dropout = Dropout(config.dropout)
        self.combine = nn.Linear(2 * size, size)
        self.to_start = nn.Linear(size, 2 * config.num_layers * size)

    def forward(self, source: Source, words: Tensor) -> Memory:
        """`words` are the decoder's embeddings [V, H]."""
        where = self.keys(source.keys) + self.places(source.places.clamp(max=LAST_PLACE))
        embedded = torch.cat([embedding(source.words, words), where], -1)
        items = self.combine(self.dropout(embedded)).tanh()
        return Memory(items, source.active, source.says, self._start(items, source.active))

    def hide(self, source: Source, sentence: Tensor) -> Tensor:
        """Words to show as unknown in training: some of those that the sentence quotes, [B, N].

        To say them all the same, the decoder must copy them. The words of a value are hidden
        together; words of no key, each for itself.
        """
        quoted = (source.says.unsqueeze(-1) == sentence.unsqueeze(1)).any(-1) & source.active
        draws = torch.rand(quoted.shape, device=quoted.device)
        same_key = source.keys.unsqueeze(-1) == source.keys.unsqueeze(1)
        first_of_key = same_key.int().argmax(-1)
        shared = torch.where(source.keys == UNKNOWN, draws, draws.gather(1, first_of_key))
        return quoted & (shared < self.hide_rate)

    def _start(self, items: Tensor, active: Tensor) -> Carry:
        """What the decoder starts with, in full precision, which an LSTM needs on a CPU."""
        weights = active.to(items.dtype).unsqueeze(-1)
        mean = (items * weights).sum(1) / weights.sum(1).clamp(min=1)
        start = self.to_start(mean).to(self.to_start.weight.dtype).tanh()
        parts = start.chunk(2 * self.layers, -1)
        return torch.stack(parts[: self.layers]), torch.stack(parts[self.layers :])


class Attention(nn.Module):
    """Looks up what a query asks for."""

    def __init__(self, query_size: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, size)
        self.scale = size**-0.5

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Finds [B, T, H] what queries [B, T, D] ask for, with the weights of items [B, T, N].

        The weights are probabilities to copy, so half precision will not do for them.
        """
        scores = self.query(query) @ memory.items.transpose(1, 2) * self.scale
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        lowest = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~memory.active.unsqueeze(1), lowest).softmax(-1)
        return weights @ memory.items, weights
