"""All sentences of a tiny model, scored by the model as a whole: nothing here goes word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import torch
from torch.nn.functional import one_hot

from models.config import ModelConfig
from models.data.batches import Batch, collate_sources
from models.data.sources import EncodedSource
from models.data.vocabulary import END, UNKNOWN
from models.generation.search import Decoding, Written, write
from models.vae.decoder import LogJoint
from models.vae.template_vae import TemplateVAE

STATES, VOCABULARY_SIZE, KEYS = 2, 6, 6
NEW_WORD = VOCABULARY_SIZE  # of the source alone
CONFIG = ModelConfig(num_states=STATES, hidden_size=6)
GREEDY, BEAM = Decoding("greedy", max_words=6), Decoding("beam", beam=3, max_words=6)
TEMPLATES = [[1, 0, 1, 1], [0], [0, 1, 1]]  # of the sources below

PLAIN = EncodedSource([4], [1], [5], [5], [0], [])
WITH_NEW_WORD = EncodedSource([4, 5, 4], [1, 1, 2], [4, 3, 3], [4, 6, 6], [0, 0, 0], ["new"])
WITH_NEED = WITH_NEW_WORD._replace(needed=[0, 1, 1])
SOURCES = [PLAIN, WITH_NEW_WORD, WITH_NEED]


def tiny_model(
    seed: int = 0, latent: bool = True, scale: float = 3.0, config: ModelConfig = CONFIG
) -> TemplateVAE:
    """Far from uniform: its parameters are large."""
    torch.manual_seed(seed)
    model = TemplateVAE(config, VOCABULARY_SIZE, latent, KEYS).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    return model


def phrase_model() -> TemplateVAE:
    """With phrases of at most two words."""
    config = replace(CONFIG, posterior="semi-markov", max_phrase=2)
    return tiny_model(config=config)


@torch.no_grad()
def phrase_log_joint(
    model: TemplateVAE,
    source: EncodedSource,
    words: Sequence[int],
    states: Sequence[int],
    starts: Sequence[int],
) -> LogJoint:
    """The model's own score of a sentence with its phrases."""
    batch = _batch(source, [words])
    events = model.posterior(batch).event_of(torch.tensor([states]), torch.tensor([starts]).bool())
    return LogJoint(*(part[0] for part in model.log_joint(batch, events[None])))


class Possible(NamedTuple):
    """A sentence or its beginning."""

    words: tuple[int, ...] = ()  # with the end mark, if it has ended
    states: tuple[int, ...] = ()  # of each, the end mark too
    log_prob: float = 0.0
    state_log_prob: float = 0.0  # its part that is due to states
    chance: float = 1.0  # to be drawn by one who writes real words only, and one at least

    @property
    def ended(self) -> bool:
        return END in self.words

    @property
    def length(self) -> int:
        """Without the end mark."""
        return len(self.words) - self.ended


@torch.no_grad()
def log_joint(
    model: TemplateVAE,
    source: EncodedSource,
    words: Sequence[Sequence[int]],
    states: Sequence[Sequence[int]],
) -> LogJoint:
    """The model's own score of sentences of one length, each with a state for each word."""
    batch = _batch(source, words)
    if not model.latent:
        return model.log_joint(batch)
    templates = one_hot(torch.tensor(states), STATES).double()
    return LogJoint(*(part[0] for part in model.log_joint(batch, templates[None])))


def _batch(source: EncodedSource, words: Sequence[Sequence[int]]) -> Batch:
    goals = torch.tensor(words)
    inputs = goals.masked_fill(goals >= VOCABULARY_SIZE, UNKNOWN)
    lengths = torch.full((len(words),), goals.shape[1])
    return Batch(inputs, lengths, collate_sources([source] * len(words)), goals)


def continuations(
    model: TemplateVAE, source: EncodedSource, begun: Sequence[Possible]
) -> list[list[Possible]]:
    """For each of the beginnings, all of one length, and each state: with that and each word more.

    An end at the beginning is no sentence.
    """
    real = [4, 5, *sorted({number for number in source.says if number >= VOCABULARY_SIZE})]
    options = [END, *real] if begun[0].words else real
    grown = [(before, state) for before in begun for state in range(STATES)]
    words = [[(*before.words, word) for word in options] for before, _ in grown]
    states = [(*before.states, state) for before, state in grown]
    every = [path for path in states for _ in options]
    scores = log_joint(model, source, list(chain.from_iterable(words)), every)
    totals, of_words, of_states = (
        part.view(len(grown), -1) for part in (scores.total(), scores.words, scores.states)
    )
    before = torch.tensor([[b.chance, b.state_log_prob] for b, _ in grown], dtype=torch.double)
    chances = before[:, :1] * (of_states - before[:, 1:]).exp() * of_words.softmax(-1)
    return [
        [Possible(w, path, *numbers) for w, *numbers in zip(*row, strict=True)]
        for path, *row in zip(states, words, *_lists(totals, of_states, chances), strict=True)
    ]


def possible_sentences(model: TemplateVAE, source: EncodedSource, max_words: int) -> list[Possible]:
    """All that have ended after so many words, the end mark one of them, and all that are cut."""
    found, begun = [], [Possible()]
    for _ in range(max_words):
        longer = list(chain.from_iterable(continuations(model, source, begun)))
        found += [one for one in longer if one.ended]
        begun = [one for one in longer if not one.ended]
    return found + begun


def _lists(*tensors: torch.Tensor) -> list[list[list[float]]]:
    return [tensor.tolist() for tensor in tensors]


def texts(model, decoding, templates=None, sources=SOURCES) -> list[Written]:
    """What is written from the sources."""
    torch.manual_seed(0)
    return [best for best, *_ in write(model, collate_sources(sources), decoding, templates)]


def with_bias(word: int, bias: float, seed: int = 0):
    """A model that likes a word more, or less."""
    model = tiny_model(seed)
    with torch.no_grad():
        model.decoder.output.to_words.bias[word] += bias
    return model


def own_scores(model, source, text: Written) -> list[float]:
    """The model's score of what was written, one for each state that its end mark can have."""
    words = [*text.words, END] if text.ended else text.words
    ends = [[state] for state in range(STATES)] if text.ended else [[]]
    states = [[*text.states, *end] for end in ends]
    return log_joint(model, source, [words] * len(ends), states).total().tolist()


def without_end_state(sentence: Possible) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    n = sentence.length
    return sentence.words[:n], sentence.states[:n], sentence.ended


def shown(text: Written) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    return tuple(text.words), tuple(text.states), text.ended
