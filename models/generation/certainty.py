"""How sure a sentence leaves its reader of what the table says, by the model itself.

    p(s | x, z) = p(x, z | s) / sum of p(x, z | s') over s and all tables s' that differ from it in
                  one value, each as likely as the other before the sentence is read

A sentence that contradicts its table is likelier of another one, and a sentence that passes over a
value is as likely whatever the value is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from models.data.batches import collate, padded
from models.data.corpus import Example
from models.data.sources import table_items
from models.data.tables import Table
from models.data.tasks import encode_pair
from models.data.vocabulary import Vocabulary
from models.generation.writer import Sentence
from models.runs import TrainedRun

MOST_VALUES = 10  # of a key that a table is compared with, the most frequent first


def table_log_probs(
    trained: TrainedRun,
    table: Table,
    sentences: Sequence[Sentence],
    values: Mapping[str, Sequence[str]],
) -> list[float]:
    """Log p(table | sentence, its states) of each sentence, given the `values` of each key.

    The sentences are scored under each table, all at once.
    """
    others = list(tables_like(table, values, trained.vocabulary.words))
    if not others or not sentences:
        return [0.0] * len(sentences)
    scores = torch.stack([_log_joint(trained, each, sentences) for each in (table, *others)])
    return scores.log_softmax(0)[0].tolist()


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
    templates = (states * batch.active.unsqueeze(-1)).float().unsqueeze(0)
    return trained.model.log_joint(batch, templates).total().squeeze(0).double()
