"""p(x, z), or p(x, z | s) with a source s, autoregressive in words and states.

    h_t = LSTM([e(z_{t-1}); e(x_{t-1})])
    p(z_t) = softmax(FF(h_t)),  p(x_t) = softmax(FF([e(z_t); h_t]))

A state is one-hot, or close to it, so each matrix that it meets embeds it: e(z) is z itself there.
FF is a matrix; with `word_layer`, that of the words has a hidden layer before it.
With templates of phrases z_t is a state and whether a phrase begins (`models/vae/phrases.py`).
With a source, the LSTM starts from it, FF also sees what attention finds there (for z_t it is asked
by h_t, for x_t by z_t and h_t), and x_t may be copied from it.

In training z comes from q, so all inputs are known and the LSTM runs once over the sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from models.config import Knobs, ModelConfig
from models.data.batches import Batch, Source
from models.data.vocabulary import PAD, UNKNOWN
from models.vae.layers import LSTM, Dropout, drop_sentences
from models.vae.phrases import classes_of, must_begin
from models.vae.source_encoder import Attention, Carry, Memory, SourceEncoder
from models.vae.word_output import WordOutput


class LogJoint(NamedTuple):
    """Log probabilities of sentences [B], split in two; without a template the second is 0."""

    words: Tensor  # log p(x | z), each word given all before it
    states: Tensor  # log p(z), each state given all before it

    def total(self) -> Tensor:
        return self.words + self.states


class Decoder(nn.Module):
    """Without `latent` it is a plain recurrent language model; with `num_keys` it reads sources."""

    def __init__(
        self, config: ModelConfig, vocabulary_size: int, latent: bool, num_keys: int | None
    ) -> None:
        super().__init__()
        size, reads = config.hidden_size, num_keys is not None
        self.num_states = config.num_states if latent else 0
        self.max_phrase = config.max_phrase if latent and config.has_phrases else None
        template_size = self.num_states + (self.max_phrase is not None)
        inputs = size + template_size
        found = size if reads else 0  # by attention
        self.embedding = nn.Embedding(vocabulary_size, size, padding_idx=PAD)
        self.lstm = LSTM(inputs, size, config.num_layers, batch_first=True)
        self.dropout = Dropout(config.dropout)
        self.source_encoder = SourceEncoder(config, num_keys) if num_keys is not None else None
        self.look_for_state = Attention(size, size) if reads and latent else None
        self.look_for_word = Attention(inputs, size) if reads else None
        self.to_states = nn.Linear(size + found, template_size) if latent else None
        known = inputs + found
        self.mix = nn.Linear(known, size) if config.word_layer else None
        self.output = WordOutput(size if config.word_layer else known, vocabulary_size, reads)

    def forward(self, batch: Batch, states: Tensor | None, knobs: Knobs) -> LogJoint:
        """Score sentences under templates [B, T, K], hard or relaxed; of phrases [B, T, K + 1].

        In training, `word_dropout` hides that share of the input words, and `context_dropout` is
        the share of sentences whose words are each predicted from their state (and source) alone.

        `target_gradient` is the share of the gradient that flows from log p(z) to q through the
        states as targets (through the inputs, all of it does). With 0 they are fixed targets: so
        the published code trains, and so q learns while the decoder could do without states.
        """
        batch, memory = self._remember(batch)
        words = batch.inputs()
        if self.training and knobs.word_dropout > 0:
            hidden_words = torch.rand(words.shape, device=words.device) < knobs.word_dropout
            words = words.masked_fill(hidden_words, UNKNOWN)
        before = None if states is None else pad(states[:, :-1], (0, 0, 1, 0))
        hidden, _ = self.advance(words, before, memory and memory.start)
        log_p_states = hidden.new_zeros(len(hidden))
        if states is not None:
            fixed = states.detach()
            target, must = fixed + knobs.target_gradient * (states - fixed), None
            if self.max_phrase is not None:
                must, target = must_begin(target, self.max_phrase), classes_of(target, batch.active)
            log_probs = self.state_log_probs(hidden, memory, must)
            log_p_states = (target * log_probs.masked_fill(log_probs.isinf(), 0.0)).sum((-1, -2))
            hidden = drop_sentences(hidden, knobs.context_dropout if self.training else 0.0)
        log_p_words = self.output.score(*self.features(states, hidden, memory), batch).sum(-1)
        return LogJoint(log_p_words, log_p_states)

    def read(self, source: Source) -> Memory:
        if self.source_encoder is None:
            raise ValueError("this model does not read sources")
        return self.source_encoder(source, self.embedding.weight)

    def advance(
        self, words: Tensor, before: Tensor | None, carry: Carry | None
    ) -> tuple[Tensor, Carry]:
        """Hidden [B, T, H], after the words [B, T] and the states [B, T, K] before each step."""
        inputs = self.dropout(self.embedding(words))
        if before is not None:
            inputs = torch.cat([before, inputs], -1)
        hidden, carry = self.lstm(inputs, carry)
        return self.dropout(hidden), carry

    def state_log_probs(
        self, hidden: Tensor, memory: Memory | None, must_begin: Tensor | None = None
    ) -> Tensor:
        """Log probabilities of each state z_t [B, T, K], or of each class of phrases [B, T, K + 1].

        The last class, to go on, is forbidden where a phrase must begin, bool [B, T].
        """
        if self.to_states is None:
            raise ValueError("a model without templates has no states")
        if memory is not None and self.look_for_state is not None:
            hidden = torch.cat([hidden, self.look_for_state(hidden, memory)[0]], -1)
        scores = self.to_states(hidden)
        if must_begin is not None:
            going_on = torch.arange(scores.shape[-1], device=scores.device) == self.num_states
            scores = scores.masked_fill(must_begin.unsqueeze(-1) & going_on, -torch.inf)
        return scores.log_softmax(-1)

    def features(
        self, states: Tensor | None, hidden: Tensor, memory: Memory | None
    ) -> tuple[Tensor, Tensor | None]:
        """What the next word is told by [B, T, D], and weights of the items to copy [B, T, N]."""
        known = hidden if states is None else torch.cat([states, hidden], -1)
        weights = None
        if memory is not None and self.look_for_word is not None:
            found, weights = self.look_for_word(known, memory)
            known = torch.cat([known, found], -1)
        return known if self.mix is None else self.dropout(self.mix(known).tanh()), weights

    def _remember(self, batch: Batch) -> tuple[Batch, Memory | None]:
        """The source, if there is one; in training, with words hidden that must be copied."""
        if self.source_encoder is None:
            return batch, None
        if batch.source is None:
            raise ValueError("a model that reads sources needs them in its batches")
        if self.training and self.source_encoder.hide_rate > 0:
            batch = batch.hiding(self.source_encoder.hide(batch.source, batch.target))
        assert batch.source is not None
        return batch, self.read(batch.source)
