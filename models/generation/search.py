"""Writing sentences from sources: the likeliest word again and again, draws, or a beam.

All of them go over states and words together: first z_t, then x_t given it. They stop when every
sentence of the batch has ended, and after `max_words` words in any case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from models.config import Decoding
from models.data.batches import Source
from models.data.vocabulary import END, PAD, UNKNOWN
from models.generation.stepper import Position, Stepper
from models.vae.template_vae import TemplateVAE

MUCH = 1e3  # more than log probabilities per word differ by
Grown = tuple[Tensor, Tensor, Tensor, Tensor]  # rows that go on, words, choices, log probabilities


class Written(NamedTuple):
    words: list[int]  # without the end mark; beyond the vocabulary for words of the source alone
    states: tuple[int, ...]  # of each word; `Phrases` if the model has any
    log_prob: float  # log p(x, z | source), end mark and its state included
    ended: bool  # or it was cut


class Beginnings(NamedTuple):
    """The beginnings of R sentences; those that have ended grow by padding."""

    words: Tensor  # [R, t]
    choices: Tensor  # [R, t]: of states, or to go on with a phrase
    log_probs: Tensor  # [R], double
    ended: Tensor  # bool [R]

    @classmethod
    def empty(cls, rows: Tensor) -> Beginnings:
        nothing, ended = rows.new_empty(len(rows), 0), torch.zeros_like(rows, dtype=torch.bool)
        return cls(nothing, nothing, ended.double(), ended)

    def longer(self, words: Tensor, choices: Tensor, log_probs: Tensor) -> Beginnings:
        """The beginnings with one more word and choice each [R]; `log_probs` are of the whole."""
        words = words.masked_fill(self.ended, PAD)
        return Beginnings(
            torch.cat([self.words, words.unsqueeze(1)], 1),
            torch.cat([self.choices, choices.unsqueeze(1)], 1),
            torch.where(self.ended, self.log_probs, log_probs.double()),
            self.ended | (words == END),
        )

    def select(self, rows: Tensor) -> Beginnings:
        return Beginnings(*(part[rows] for part in self))

    def lengths(self) -> Tensor:
        """How many words each has [R], the end mark among them."""
        return (self.words != PAD).sum(-1)

    def written(self, stepper: Stepper) -> list[Written]:
        found = []
        for words, choices, log_prob, ended in zip(*(part.tolist() for part in self), strict=True):
            length = words.index(END) if ended else len(words)
            states = stepper.template(choices[:length])
            found.append(Written(words[:length], states, log_prob, ended))
        return found


@torch.no_grad()
def write(
    model: TemplateVAE,
    source: Source,
    decoding: Decoding,
    templates: Sequence[Sequence[int]] | None = None,
    copied_only: Sequence[int] = (),
) -> list[list[Written]]:
    """What is written for each source, under the template of the same place if there are any.

    That is one sentence or, of a beam, all that have ended, the best first.

    Words `copied_only`, such as key marks, are not written where the source does not say them.
    """
    stepper = Stepper(model, source, templates, copied_only)
    most = decoding.max_words if templates is None else max(map(len, templates)) + 1
    position = stepper.start()
    texts = Beginnings.empty(position.rows)
    grow = _beam if decoding.method == "beam" else _one_each
    for step in range(most):
        rows, words, choices, log_probs = grow(stepper, position, texts, decoding, step)
        texts = texts.select(rows).longer(words, choices, log_probs)
        if texts.ended.all():
            break
        position = stepper.advance(position.select(rows), words, choices)
    ranks = _final_ranks(stepper, texts, decoding.length_penalty)  # [B, W]
    written = iter(texts.written(stepper))
    found = []
    for own in ranks.tolist():
        rivals = [(-rank, place, next(written)) for place, rank in enumerate(own)]
        ended = [text for rank, _, text in sorted(rivals) if rank < math.inf]
        found.append(ended or [rivals[0][-1]])
    return found


def _one_each(
    stepper: Stepper, position: Position, texts: Beginnings, decoding: Decoding, step: int
) -> Grown:
    temperature = decoding.temperature if decoding.method == "sample" else None
    choice_scores = stepper.choice_log_probs(position, step)
    choices = _choose(choice_scores, temperature)
    word_scores = stepper.word_log_probs(position, choices, step)
    words = _choose(word_scores, temperature)
    gained = choice_scores.gather(1, choices[:, None]) + word_scores.gather(1, words[:, None])
    return position.rows, words, choices, texts.log_probs + gained.squeeze(1)


def _choose(log_probs: Tensor, temperature: float | None) -> Tensor:
    """One of [R, N] for each row: the likeliest, or drawn."""
    if temperature is None:
        return log_probs.argmax(-1)
    below_best = (log_probs - log_probs.amax(-1, keepdim=True)).double()  # finite when divided
    return (below_best / temperature).softmax(-1).multinomial(1).squeeze(-1)


def _beam(
    stepper: Stepper, position: Position, texts: Beginnings, decoding: Decoding, step: int
) -> Grown:
    """Beginnings, ended or not, compete by log probability per word.

    The best that has ended keeps its place all the same, so that there is an answer where those
    that beat it never end.
    """
    tried, likely, log_probs = _continuations(stepper, position, texts, decoding.beam, step)
    lengths = texts.lengths() + (~texts.ended).long()
    ranks = log_probs / (lengths**decoding.length_penalty)[:, None, None]
    final = _final_ranks(stepper, texts, decoding.length_penalty)
    best_ended = one_hot(final.argmax(-1), final.shape[-1]).bool() & final.isfinite()
    ranks[best_ended.flatten(), 0, 0] = torch.inf
    ranks = ranks.view(len(final), -1)  # of each source
    best = ranks.topk(min(decoding.beam, ranks.shape[-1])).indices  # [B, W]
    firsts = torch.arange(0, ranks.numel(), ranks.shape[-1], device=best.device)
    flat = (best + firsts[:, None]).flatten()
    words, choices = likely.flatten()[flat], tried.flatten()[flat // log_probs.shape[-1]]
    return flat // log_probs[0].numel(), words, choices, log_probs.flatten()[flat]


def _continuations(
    stepper: Stepper, position: Position, texts: Beginnings, most: int, step: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The likeliest choices [R, M], words with each [R, M, W], and log probabilities [R, M, W].

    A source keeps `most` continuations, so more of one beginning and choice cannot be among them.
    Words are only asked for with choices that are possible: a template leaves one.
    """
    choice_scores = stepper.choice_log_probs(position, step)
    best = choice_scores.topk(min(most, choice_scores.shape[-1]))
    rows, tried = best.indices.shape
    every = torch.arange(rows, device=best.indices.device).repeat_interleave(tried)
    possible = best.values.flatten().isfinite()
    choices = best.indices.flatten()[possible]
    found = stepper.word_log_probs(position.select(every[possible]), choices, step)
    likely = found.topk(min(most, found.shape[-1]))
    words = every.new_full((rows * tried, likely.indices.shape[-1]), UNKNOWN)
    words[possible] = likely.indices
    log_probs = torch.full_like(words, -torch.inf, dtype=torch.double)
    log_probs[possible] = likely.values.double()
    words, log_probs = words.view(rows, tried, -1), log_probs.view(rows, tried, -1)
    log_probs = log_probs + best.values.unsqueeze(-1) + texts.log_probs[:, None, None]
    log_probs[texts.ended] = -torch.inf
    log_probs[texts.ended, 0, 0] = texts.log_probs[texts.ended]  # it stays as it is
    return best.indices, words, log_probs


def _final_ranks(stepper: Stepper, texts: Beginnings, length_penalty: float) -> Tensor:
    """How good each is as an answer [B, W]: it has ended, or else -inf, and lacks no needed word.

    Needed are those that only a copy can say, so that nothing else makes up for them.
    """
    sources = len(stepper.needed)
    needed = stepper.needed.repeat_interleave(len(texts.words) // sources, 0)  # [R, N]
    said = (texts.words.unsqueeze(1) == needed.unsqueeze(-1)).any(-1)
    lacking = (~said & (needed != PAD)).sum(-1)
    ranks = texts.log_probs / texts.lengths() ** length_penalty - MUCH * lacking
    return ranks.masked_fill(~texts.ended, -torch.inf).view(sources, -1)
