"""The decoder, a word at a time: first a choice, then a word.

A choice is a state. With phrases it is the state of a phrase that begins here, or the number of
states, which goes on with the phrase (`models/vae/phrases.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from models.data.batches import Source
from models.data.vocabulary import END, PAD, START, UNKNOWN
from models.templates.segments import Phrases, segment_starts
from models.vae.source_encoder import Carry
from models.vae.template_vae import TemplateVAE

NEVER = [PAD, START, UNKNOWN]  # what is no word is not written


class Position(NamedTuple):
    """The states of R sentences that are being written."""

    hidden: Tensor  # [R, H], after all words and states before
    carry: Carry
    rows: Tensor  # [R]: the source that each sentence is written from
    states: Tensor  # [R], of the last word; -1 before the first
    phrase: Tensor  # [R]: words of the phrase so far

    def select(self, which: Tensor) -> Position:
        hidden, cell = self.carry
        carry = (hidden[:, which], cell[:, which])
        others = (part[which] for part in (self.rows, self.states, self.phrase))
        return Position(self.hidden[which], carry, *others)


class Stepper:
    """Writes sentences from sources [B, N], each under the template of its source if it has one.

    Under a template, a sentence has a word for each of its states, then it ends. If the model has
    phrases, they start where the template's segments do; one that is too long is cut. Of the words
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
        self.num_states, self.max_phrase = self.decoder.num_states, self.decoder.max_phrase
        self.memory = self.decoder.read(source)
        self.source = source
        if templates is not None and not self.latent:
            raise ValueError("a model without templates cannot follow one")
        self.templates = templates and [self._choices(template) for template in templates]
        self.absent = {word: (source.says != word).all(-1) for word in copied_only}

    def start(self) -> Position:
        rows = self.every_source()
        nothing, start = torch.full_like(rows, -1), torch.full_like(rows, START)
        told = self._told(nothing, torch.zeros_like(rows))
        hidden, carry = self._read_on(start, told, self.memory.start)
        return Position(hidden, carry, rows, nothing, torch.zeros_like(rows))

    def every_source(self) -> Tensor:
        """Their rows [B]."""
        return torch.arange(len(self.source.says), device=self.memory.items.device)

    def needed_words(self, rows: Tensor) -> Tensor:
        """What only a copy from the source can say [R, N], `PAD` elsewhere."""
        return (self.source.says * self.source.needed)[rows]

    def advance(self, position: Position, words: Tensor, choices: Tensor) -> Position:
        """Where each sentence stands after a word and a choice [R] more."""
        states, phrase = self._chosen(position, choices)
        hidden, carry = self._read_on(words, self._told(states, phrase), position.carry)
        return Position(hidden, carry, position.rows, states, phrase)

    def choice_log_probs(self, position: Position, step: int) -> Tensor:
        """[R, C]; a template leaves one of them. Without templates, one that means nothing.

        What the template asks for has the probability that the model gives it.
        """
        if not self.latent:
            return position.hidden.new_zeros(len(position.rows), 1)
        memory = self.memory.select(position.rows)
        hidden, must_begin = position.hidden.unsqueeze(1), None
        if self.max_phrase is not None:
            begun = (position.phrase > 0) & (position.phrase < self.max_phrase)
            must_begin = ~begun.unsqueeze(1)
        log_probs = self.decoder.state_log_probs(hidden, memory, must_begin).squeeze(1)
        if self.templates is None:
            return log_probs
        asked = self._asked(step)[position.rows]  # [R]
        every = one_hot(asked.clamp(min=0), log_probs.shape[-1])
        others = (every == 0) & (asked >= 0).unsqueeze(-1)
        return log_probs.masked_fill(others, -torch.inf)

    def word_log_probs(self, position: Position, choices: Tensor, step: int) -> Tensor:
        """[R, V + N], given a choice [R] for each."""
        memory = self.memory.select(position.rows)
        hidden = position.hidden.unsqueeze(1)
        given = self._told(*self._chosen(position, choices))
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
        """The choice that each source's template has here [B], -1 after its end."""
        assert self.templates is not None
        asked = [own[step] if step < len(own) else -1 for own in self.templates]
        return torch.tensor(asked, device=self.memory.items.device)

    def template(self, choices: Sequence[int]) -> tuple[int, ...]:
        """The states that choices come to, of one word after the other."""
        if self.max_phrase is None:
            return tuple(choices)
        starts = [choice < self.num_states for choice in choices]
        states: list[int] = []
        for choice, starts_here in zip(choices, starts, strict=True):
            states.append(choice if starts_here else states[-1])
        return Phrases(states, starts)

    def _choices(self, template: Sequence[int]) -> list[int]:
        """The inverse of `template`, where a phrase that is too long begins again."""
        if self.max_phrase is None:
            return list(template)
        choices, length = [], 0
        for state, starts in zip(template, segment_starts(template), strict=True):
            begins = starts or length == self.max_phrase
            length = 1 if begins else length + 1
            choices.append(state if begins else self.num_states)
        return choices

    def _chosen(self, position: Position, choices: Tensor) -> tuple[Tensor, Tensor]:
        """The states of words [R] after the position, and the words of their phrases so far."""
        if self.max_phrase is None:
            return choices, torch.ones_like(choices)
        goes_on = choices == self.num_states
        states = torch.where(goes_on, position.states, choices)
        return states, torch.where(goes_on, position.phrase + 1, 1)

    def _told(self, states: Tensor, phrase: Tensor) -> Tensor | None:
        """What the decoder is told of words [R, 1, K or K + 1]; zeros before the first word."""
        if not self.latent:
            return None
        dtype = self.memory.items.dtype
        told = pad(one_hot(states + 1, self.num_states + 1), (-1, 0)).to(dtype)
        if self.max_phrase is not None:
            told = torch.cat([told, (phrase == 1).to(dtype).unsqueeze(-1)], -1)
        return told.unsqueeze(1)

    def _read_on(self, words: Tensor, told: Tensor | None, carry: Carry) -> tuple[Tensor, Carry]:
        """Hidden [R, H] and what is handed on, after a word [R] and what is told of it."""
        beyond = words >= self.decoder.embedding.num_embeddings  # copied, and otherwise unknown
        inputs = words.masked_fill(beyond, UNKNOWN).unsqueeze(1)
        hidden, carry = self.decoder.advance(inputs, told, carry)
        return hidden.squeeze(1), carry
