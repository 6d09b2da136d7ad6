"""How sure a sentence leaves its reader of what the table says, by the model itself.

    p(s | x, z) = p(x, z | s) / sum of p(x, z | s') over s and all tables s' that differ from it in
                  one value, each as likely as the other before the sentence is read

A sentence that contradicts its table is likelier of another one, and a sentence that passes over a
value is as likely whatever the value is. Names tell nothing: the model does not see them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch.nn.functional import one_hot

from models.data.batches import in_order, padded
from models.data.corpus import Example
from models.data.sources import OPEN_KEYS, table_items
from models.data.tables import Table
from models.data.tasks import encode_pair
from models.generation.writer import Sentence
from models.runs import TrainedRun

BATCH = 250
MOST_VALUES = 10  # of a key that a table is compared with, the most frequent first


@torch.no_grad()
def table_log_probs(
    trained: TrainedRun,
    table: Table,
    sentences: Sequence[Sentence],
    values: Mapping[str, Sequence[str]],
) -> list[float]:
    """Log p(table | sentence, its states) of each sentence, given the `values` of each key.

    End marks do not count: under a template a sentence ends where that does. All sentences are
    scored under all tables, so time is proportional to the number of both.
    """
    tables = [table, *tables_like(table, values)]
    if len(tables) == 1:
        return [0.0] * len(sentences)
    vocabulary, model = trained.vocabulary, trained.model
    pairs = [
        encode_pair(Example(sentence.words), table_items(other, vocabulary.words), vocabulary)
        for other in tables
        for sentence in sentences
    ]
    templates = [sentence.states for sentence in sentences] * len(tables)
    found = []
    for number, batch in enumerate(in_order(pairs, BATCH)):
        batch = batch._replace(lengths=batch.lengths - 1)
        states = padded([[*own, 0] for own in templates[number * BATCH :][:BATCH]])
        one_hots = one_hot(states, trained.config.model.num_states) * batch.active.unsqueeze(-1)
        like = next(model.parameters())
        found.append(model.log_joint(batch, one_hots.unsqueeze(0).to(like)).total().squeeze(0))
    return torch.cat(found).double().view(len(tables), -1).log_softmax(0)[0].tolist()


def tables_like(table: Table, values: Mapping[str, Sequence[str]]) -> Iterator[Table]:
    """The tables that have another value of one key."""
    for place, (key, own) in enumerate(table):
        if key in OPEN_KEYS:
            continue
        for value in [value for value in values.get(key, ()) if value != own][:MOST_VALUES]:
            yield (*table[:place], (key, value), *table[place + 1 :])
