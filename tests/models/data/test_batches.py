"""Batches of sentences with their sources."""

from __future__ import annotations

import pytest
import torch

from models.data.batches import Batch, EncodedPair, Source, collate
from models.data.sources import EncodedSource
from models.data.vocabulary import END, PAD, UNKNOWN

NEW = 9  # the first number beyond the vocabulary
TABLE = EncodedSource([4, 4, 5], [1, 2, 1], [7, 8, 6], [7, 8, 6], [0, 0, 0], [])
BAG = EncodedSource([UNKNOWN], [1], [UNKNOWN], [NEW], [1], ["new"])


@pytest.fixture
def batch():
    """Two sentences: one quotes a table, one copies a word that is new."""
    quoting = EncodedPair([7, 8, 5, 6, 7, END], TABLE, [7, 8, 5, 6, 7, END])
    copying = EncodedPair([UNKNOWN, UNKNOWN, END], BAG, [NEW, UNKNOWN, END])
    return collate([quoting, copying])


def hiding(batch: Batch, *items: tuple[int, int]) -> Batch:
    """Those items, by sentence and place."""
    hidden = torch.zeros_like(batch.source.active)
    for item in items:
        hidden[item] = True
    return batch.hiding(hidden)


def test_hidden_words_are_unknown_where_they_are_read(batch):
    found = hiding(batch, (0, 0), (0, 1))
    assert found.source.words[0].tolist() == [UNKNOWN, UNKNOWN, 6]
    assert found.words[0].tolist() == [UNKNOWN, UNKNOWN, 5, 6, UNKNOWN, END]
    assert found.inputs()[0, 1:].tolist() == [UNKNOWN, UNKNOWN, 5, 6, UNKNOWN]


def test_hidden_words_stay_what_is_to_be_said(batch):
    found = hiding(batch, (0, 0), (0, 1), (1, 0))
    assert torch.equal(found.target, batch.target)
    assert torch.equal(found.source.says, batch.source.says)
    assert torch.equal(found.lengths, batch.lengths)


def test_other_sentences_stay_as_they_are(batch):
    found = hiding(batch, (0, 2))
    assert found.words[0].tolist() == [7, 8, 5, UNKNOWN, 7, END]
    assert torch.equal(found.words[1], batch.words[1])
    assert torch.equal(found.source.words[1], batch.source.words[1])


def test_hiding_nothing_changes_nothing(batch):
    found = hiding(batch)
    assert torch.equal(found.words, batch.words)
    assert torch.equal(found.source.words, batch.source.words)


def test_hiding_needs_a_source(batch):
    with pytest.raises(ValueError, match="without a source"):
        Batch(batch.words, batch.lengths).hiding(batch.source.active)


def test_the_source_is_active_where_there_is_a_word(batch):
    assert batch.source.active.tolist() == [[True] * 3, [True, False, False]]


def test_targets(batch):
    """The words, unless the source has those that the vocabulary lacks."""
    assert batch.target[1].tolist() == [NEW, UNKNOWN, END, PAD, PAD, PAD]
    assert batch._replace(goals=None).target is batch.words


def test_sources_and_goals_are_repeated_too(batch):
    found = batch.repeat(3)
    for part in ("words", "lengths", "goals"):
        assert getattr(found, part).tolist() == 3 * getattr(batch, part).tolist(), part
    for part in Source._fields:
        expected = 3 * getattr(batch.source, part).tolist()
        assert getattr(found.source, part).tolist() == expected, part


def test_every_part_moves(batch):
    """To a device that holds no numbers, but can be anywhere."""
    found = batch.to(torch.device("meta"))
    parts = [found.words, found.lengths, found.goals, *found.source]
    assert {part.device.type for part in parts} == {"meta"}


def test_text_moves_without_a_source(batch):
    found = Batch(batch.words, batch.lengths).to(torch.device("meta"))
    assert found.words.device.type == "meta"
    assert found.source is found.goals is None
