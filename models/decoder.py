"""p(x, z), autoregressive in words and states.

    h_t = LSTM([e(z_{t-1}); e(x_{t-1})])
    p(z_t) = softmax(FF(h_t)),  p(x_t) = softmax(FF([e(z_t); h_t]))

A state is one-hot, or close to it, so each matrix that it meets embeds it: e(z) is z itself there.
In training z comes from q, so all inputs are known and the LSTM runs once over the sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, pad

from models.config import ModelConfig
from models.data.batch import PAD, START, UNKNOWN, Batch
from models.dropout import Dropout, drop_sentences
from models.recurrent import LSTM


class LogJoint(NamedTuple):
    """Log probabilities of sentences [B], split in two; without a template the second is 0."""

    words: Tensor  # log p(x | z), each word given all before it
    states: Tensor  # log p(z), each state given all before it

    def total(self) -> Tensor:
        return self.words + self.states


class Decoder(nn.Module):
    """With `latent=False` it is a plain recurrent language model of the same size."""

    never: Tensor

    def __init__(self, config: ModelConfig, vocabulary_size: int, latent: bool = True) -> None:
        super().__init__()
        size = config.hidden_size
        self.embedding = nn.Embedding(vocabulary_size, size, padding_idx=PAD)
        inputs = size + config.num_states if latent else size
        self.lstm = LSTM(inputs, size, config.num_layers)
        self.dropout = Dropout(config.dropout)
        self.to_states = nn.Linear(size, config.num_states) if latent else None
        self.to_words = nn.Linear(inputs, vocabulary_size)
        never = torch.zeros(vocabulary_size)
        never[[PAD, START]] = -torch.inf
        self.register_buffer("never", never, persistent=False)

    def forward(
        self,
        batch: Batch,
        states: Tensor | None,
        *,
        word_dropout: float = 0.0,
        context_dropout: float = 0.0,
        target_gradient: float = 0.0,
    ) -> LogJoint:
        """Score sentences under templates [B, T, K], hard or relaxed.

        In training, `word_dropout` hides that share of the input words, and `context_dropout` is
        the share of sentences whose words are each predicted from their state alone.

        `target_gradient` is the share of the gradient that flows from log p(z) to q through the
        states as targets (through the inputs, all of it does). With 0 they are fixed targets: so
        the published code trains, and so q learns while the decoder could do without states.
        """
        inputs = self.dropout(self.embedding(self._drop(batch.inputs(), word_dropout)))
        if states is None or self.to_states is None:
            hidden = self.dropout(self.lstm(inputs)[0])
            words = self._score_words(hidden, batch)
            return LogJoint(words, torch.zeros_like(words))
        before = pad(states[:, :-1], (0, 0, 1, 0))
        hidden = self.dropout(self.lstm(torch.cat([before, inputs], -1))[0])
        fixed = states.detach()
        target = fixed + target_gradient * (states - fixed)
        log_probs = self.to_states(hidden).log_softmax(-1)
        context = drop_sentences(hidden, context_dropout if self.training else 0.0)
        return LogJoint(
            self._score_words(torch.cat([states, context], -1), batch),
            (target * log_probs).sum((-1, -2)),  # templates are zero in the padding
        )

    def _drop(self, words: Tensor, rate: float) -> Tensor:
        if rate == 0 or not self.training:
            return words
        return words.masked_fill(torch.rand(words.shape, device=words.device) < rate, UNKNOWN)

    def _score_words(self, features: Tensor, batch: Batch) -> Tensor:
        bias = self.to_words.bias + self.never  # marks that are no words are never said
        logits = linear(features.flatten(0, 1), self.to_words.weight, bias)  # [B T, V]
        targets = batch.words.flatten()
        losses = cross_entropy(logits, targets, ignore_index=PAD, reduction="none")
        return -losses.view(batch.words.shape).sum(-1)
