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

from models.data.batches import Source, padded
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
        self.needed = source.says * source.needed  # what only a copy can say [B, N]; else `PAD`
        self.absent = {word: (source.says != word).all(-1) for word in copied_only}
        self.asked: Tensor | None = None  # the choices of templates [B, T], -1 after their ends
        if templates is not None:
            if not self.latent:
                raise ValueError("a model without templates cannot follow one")
            rows = [[*(choice + 1 for choice in self._choices(own)), 0] for own in templates]
            self.asked = padded(rows).to(source.says.device) - 1

    def start(self) -> Position:
        rows = torch.arange(len(self.needed), device=self.needed.device)
        nothing, start = torch.full_like(rows, -1), torch.full_like(rows, START)
        return self._after(start, nothing, torch.zeros_like(rows), rows, self.memory.start)

    def advance(self, position: Position, words: Tensor, choices: Tensor) -> Position:
        """Where each sentence stands after a word and a choice [R] more."""
        states, phrase = self._chosen(position, choices)
        return self._after(words, states, phrase, position.rows, position.carry)

    def choice_log_probs(self, position: Position, step: int) -> Tensor:
        """[R, C]; a template leaves one of them. Without templates, one that means nothing.

        What the template asks for has the probability that the model gives it.
        """
        if not self.latent:
            return position.hidden.new_zeros(len(position.rows), 1)
        memory = self.memory.select(position.rows)
        hidden, must_begin = position.hidden.unsqueeze(1), None
        if self.max_phrase is not None:
            phrase = position.phrase.unsqueeze(1)
            must_begin = (phrase == 0) | (phrase >= self.max_phrase)
        log_probs = self.decoder.state_log_probs(hidden, memory, must_begin).squeeze(1)
        if self.asked is None:
            return log_probs
        asked = self.asked[position.rows, step].unsqueeze(-1)
        others = torch.arange(log_probs.shape[-1], device=asked.device) != asked
        return log_probs.masked_fill(others & (asked >= 0), -torch.inf)

    def word_log_probs(self, position: Position, choices: Tensor, step: int) -> Tensor:
        """[R, V + N], given a choice [R] for each: words first, and the end after a template."""
        memory, hidden = self.memory.select(position.rows), position.hidden.unsqueeze(1)
        given = self._told(*self._chosen(position, choices))
        features, weights = self.decoder.features(given, hidden, memory)
        assert weights is not None
        output = self.decoder.output
        log_probs = output.log_probs(features.squeeze(1), weights.squeeze(1), memory.says)
        for word, absent in self.absent.items():
            log_probs[:, word].masked_fill_(absent[position.rows], -torch.inf)
        log_probs[:, NEVER] = -torch.inf
        if self.asked is not None:
            over = (self.asked[position.rows, step] < 0).unsqueeze(-1)
            ends = torch.arange(log_probs.shape[-1], device=over.device) == END
            log_probs.masked_fill_(over != ends, -torch.inf)
        elif step == 0:
            log_probs[:, END] = -torch.inf
        return log_probs

    def template(self, choices: Sequence[int]) -> tuple[int, ...]:
        """The states that choices come to, of one word after the other."""
        if self.max_phrase is None:
            return tuple(choices)
        states: list[int] = []
        for choice in choices:
            states.append(choice if choice < self.num_states else states[-1])
        return Phrases(states, [choice < self.num_states for choice in choices])

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

    def _after(
        self, words: Tensor, states: Tensor, phrase: Tensor, rows: Tensor, carry: Carry
    ) -> Position:
        """The position after words [R] of these states, each the last of its phrase so far."""
        beyond = words >= self.decoder.embedding.num_embeddings  # copied, and otherwise unknown
        inputs = words.masked_fill(beyond, UNKNOWN).unsqueeze(1)
        hidden, carry = self.decoder.advance(inputs, self._told(states, phrase), carry)
        return Position(hidden.squeeze(1), carry, rows, states, phrase)
