"""How well a sentence fits its table and its template, by the model itself.

It should leave its reader sure of what the table says,

    p(s | x, z) = p(x, z | s) / sum of p(x, z | s') over s and all tables s' that differ from it in
                  one value, each as likely as the other before the sentence is read

A sentence that contradicts its table is likelier of another one, and a sentence that passes over a
value is as likely whatever the value is. And the inference network should read it in the states
that it was written in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from models.config import Knobs
from models.data.batches import collate, padded
from models.data.corpus import Example
from models.data.sources import table_items
from models.data.tables import Table
from models.data.tasks import encode_pair
from models.data.vocabulary import Vocabulary
from models.generation.writer import Sentence
from models.runs import TrainedRun
from models.templates.of_runs import map_templates
from models.templates.segments import segment_starts

MOST_VALUES = 10  # of a key that a table is compared with, the most frequent first


class Fitness(NamedTuple):
    table_log_prob: float  # log p(s | x, z)
    misread: int  # words whose best state is not the one that they were written in


def fitness(trained: TrainedRun, table: Table, sentences: Sequence[Sentence]) -> list[Fitness]:
    """How well each sentence fits."""
    others = list(tables_like(table, trained.values, trained.vocabulary.words))
    log_probs = [0.0] * len(sentences)
    if others and sentences:  # all are scored at once, under one table after the other
        scores = torch.stack([_log_joint(trained, each, sentences) for each in (table, *others)])
        log_probs = scores.log_softmax(0)[0].tolist()
    read = map_templates(trained, [Example(sentence.words) for sentence in sentences])
    misread = [
        sum(asked != found for asked, found in zip(sentence.states, states, strict=True))
        for sentence, states in zip(sentences, read, strict=True)
    ]
    return list(map(Fitness, log_probs, misread))


def tables_like(
    table: Table, values: Mapping[str, Sequence[str]], vocabulary: Vocabulary
) -> Iterator[Table]:
    """The tables that have another value of one key, which sentences would say in other words.

    The values of a key that has a mark are all said alike, so they tell nothing of each other.
    """
    said = {item.says for item in table_items(table, vocabulary)}
    for place, (key, own) in enumerate(table):
        for value in [value for value in values.get(key, ()) if value != own][:MOST_VALUES]:
            other = (*table[:place], (key, value), *table[place + 1 :])
            if said != {item.says for item in table_items(other, vocabulary)}:
                yield other


@torch.no_grad()
def _log_joint(trained: TrainedRun, table: Table, sentences: Sequence[Sentence]) -> Tensor:
    """Log p(x, z | table) [B], without end marks: under a template all end where it does."""
    vocabulary, num_states = trained.vocabulary, trained.config.model.num_states
    items = table_items(table, vocabulary.words)
    batch = collate([encode_pair(Example(own.words), items, vocabulary) for own in sentences])
    batch = batch._replace(lengths=batch.lengths - 1)
    states = one_hot(padded([[*own.states, 0] for own in sentences]), num_states)
    if trained.model.has_phrases:
        starts = padded([[*segment_starts(own.states), 0] for own in sentences])
        states = torch.cat([states, starts.unsqueeze(-1)], -1)
    templates = (states * batch.active.unsqueeze(-1)).float()
    return trained.model.decoder(batch, templates, Knobs()).total().double()
