"""The decoder, a word at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from models.data.batches import Source
from models.data.vocabulary import END, PAD, START, UNKNOWN
from models.vae.source_encoder import Carry
from models.vae.template_vae import TemplateVAE

NEVER = [PAD, START, UNKNOWN]  # what is no word is not written


class Position(NamedTuple):
    """The states of R sentences that are being written."""

    hidden: Tensor  # [R, H], after all words and states before
    carry: Carry
    rows: Tensor  # [R]: the source that each sentence is written from

    def select(self, which: Tensor) -> Position:
        hidden, cell = self.carry
        carry = (hidden[:, which], cell[:, which])
        return Position(self.hidden[which], carry, self.rows[which])


class Stepper:
    """Writes sentences from sources [B, N], each under the template of its source if it has one.

    Under a template, a sentence has a word for each of its states, then it ends. Of the words
    `copied_only`, a sentence has those that its source says.
    """

    def __init__(
        self,
        model: TemplateVAE,
        source: Source,
        templates: Sequence[Sequence[int]] | None = None,
        copied_only: Sequence[int] = (),
    ) -> None:
        self.decoder, self.latent = model.decoder, model.latent
        to_states = self.decoder.to_states
        self.num_states = 0 if to_states is None else to_states.out_features
        self.memory = self.decoder.read(source)
        self.source = source
        if templates is not None and not self.latent:
            raise ValueError("a model without templates cannot follow one")
        self.templates = templates
        self.absent = {word: (source.says != word).all(-1) for word in copied_only}

    def start(self) -> Position:
        rows = self.every_source()
        nothing = torch.full_like(rows, -1)
        return self._read_on(torch.full_like(rows, START), nothing, self.memory.start, rows)

    def every_source(self) -> Tensor:
        """Their rows [B]."""
        return torch.arange(len(self.source.says), device=self.memory.items.device)

    def needed_words(self, rows: Tensor) -> Tensor:
        """What only a copy from the source can say [R, N], `PAD` elsewhere."""
        return (self.source.says * self.source.needed)[rows]

    def advance(self, position: Position, words: Tensor, states: Tensor) -> Position:
        """Where each sentence stands after a word and a state [R] more."""
        return self._read_on(words, states, position.carry, position.rows)

    def state_log_probs(self, position: Position, step: int) -> Tensor:
        """[R, K]; a template leaves one of them. Without templates, one state that means nothing.

        A state that the template asks for has the probability that the model gives it.
        """
        if not self.latent:
            return position.hidden.new_zeros(len(position.rows), 1)
        memory = self.memory.select(position.rows)
        log_probs = self.decoder.state_log_probs(position.hidden.unsqueeze(1), memory).squeeze(1)
        if self.templates is None:
            return log_probs
        asked = self._asked(step)[position.rows]  # [R]
        others = (one_hot(asked.clamp(min=0), self.num_states) == 0) & (asked >= 0).unsqueeze(-1)
        return log_probs.masked_fill(others, -torch.inf)

    def word_log_probs(self, position: Position, states: Tensor, step: int) -> Tensor:
        """[R, V + N], given a state [R] for each."""
        memory = self.memory.select(position.rows)
        hidden = position.hidden.unsqueeze(1)
        given = self._one_hot(states).unsqueeze(1) if self.latent else None
        features, weights = self.decoder.features(given, hidden, memory)
        assert weights is not None
        log_probs = self.decoder.output.log_probs(
            features.squeeze(1), weights.squeeze(1), memory.says
        )
        for word, absent in self.absent.items():
            log_probs[:, word].masked_fill_(absent[position.rows], -torch.inf)
        return log_probs + self._allowed(position.rows, step, log_probs)

    def _allowed(self, rows: Tensor, step: int, like: Tensor) -> Tensor:
        """0 or -inf for each word: only words first, and only the end after a template."""
        never = torch.zeros_like(like[0])
        never[NEVER] = -torch.inf
        goes_on, ends = never.clone(), torch.full_like(never, -torch.inf)
        goes_on[END], ends[END] = -torch.inf, 0.0
        if self.templates is None:
            return goes_on if step == 0 else never
        over = (self._asked(step)[rows] < 0).unsqueeze(-1)
        return torch.where(over, ends, goes_on)

    def _asked(self, step: int) -> Tensor:
        """The state that each source's template has here [B], -1 after its end."""
        assert self.templates is not None
        asked = [states[step] if step < len(states) else -1 for states in self.templates]
        return torch.tensor(asked, device=self.memory.items.device)

    def _read_on(self, words: Tensor, states: Tensor, carry: Carry, rows: Tensor) -> Position:
        beyond = words >= self.decoder.embedding.num_embeddings  # copied, and otherwise unknown
        inputs = words.masked_fill(beyond, UNKNOWN).unsqueeze(1)
        before = self._one_hot(states).unsqueeze(1) if self.latent else None
        hidden, carry = self.decoder.advance(inputs, before, carry)
        return Position(hidden.squeeze(1), carry, rows)

    def _one_hot(self, states: Tensor) -> Tensor:
        """[R, K]; all zeros for -1, which is before the first."""
        dtype = self.memory.items.dtype
        return pad(one_hot(states + 1, self.num_states + 1), (-1, 0)).to(dtype)
