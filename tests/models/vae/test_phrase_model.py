"""The model of sentences as phrases: an exact likelihood, and where it begins."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from models.config import ModelConfig
from models.data.batches import Batch
from models.vae.phrase_model import PhraseModel
from structdist import SemiMarkovCRF
from tests.models.conditional import NUM_KEYS, conditional_batch
from tests.models.conftest import VOCABULARY_SIZE

CONFIG = ModelConfig(num_states=3, hidden_size=8, posterior="semi-markov", max_phrase=2)


def phrase_model(num_keys: int | None) -> PhraseModel:
    """With no parameter at its place, so that each of them matters."""
    torch.manual_seed(0)
    model = PhraseModel(CONFIG, VOCABULARY_SIZE, num_keys).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
    return model


def log_prob_of_phrases(model: PhraseModel, batch: Batch, row: int, labels, starts) -> torch.Tensor:
    """Word by word, as the docstring of the module says."""
    words = model.words
    prior = torch.zeros(CONFIG.num_states, dtype=torch.double)
    if batch.source is not None:
        keys, inputs = batch.source.keys[row], batch.source.words[row]
        items = [i for i in range(len(keys)) if batch.source.active[row, i]]
        asked = torch.stack([model.looks_up[:, keys[i]] for i in items], -1)
        nothing = torch.full((CONFIG.num_states, 1), 2.0, dtype=torch.double)
        weights = torch.cat([nothing, asked], -1).softmax(-1)[:, 1:]
        words = words + model.told(weights @ model.embedding(inputs[items]))
        present = sorted({int(keys[i]) for i in items})
        prior = model.likes[:, present].sum(-1) - model.reluctance
    total, previous = torch.zeros((), dtype=torch.double), None
    said = batch.words[row, : batch.lengths[row]].tolist()
    for place, (word, label, begins) in enumerate(zip(said, labels, starts, strict=False)):
        before = said[place - 1]
        if begins:
            if previous is not None:
                total = (
                    total
                    + (model.ends[previous] + model.ends_after.weight[before, 0]).sigmoid().log()
                )
            scores = model.start if previous is None else model.transitions[previous]
            total = total + (scores + prior).log_softmax(-1)[label]
            total = total + (words + model.first_words)[label].log_softmax(-1)[word]
        else:
            ending = model.ends[label] + model.ends_after.weight[before, 0]
            total = total + (-ending).sigmoid().log() + words[label].log_softmax(-1)[word]
        previous = label
    return total + (model.ends[previous] + model.ends_after.weight[said[-1], 0]).sigmoid().log()


@pytest.mark.parametrize("reads", [True, False])
def test_its_likelihood_adds_up_all_phrases(reads, batch):
    if reads:
        batch = conditional_batch()
    model = phrase_model(NUM_KEYS if reads else None)
    log_likelihood = model(batch).log_partition
    for row in range(len(batch.words)):
        length = int(batch.lengths[row])
        zeros = torch.zeros(length, 3), torch.zeros(3, 3), torch.zeros(2, 3)
        every = SemiMarkovCRF(*zeros)
        labels, starts = every.labels_of(every.enumerate_support())
        scores = [
            log_prob_of_phrases(model, batch, row, own, begins)
            for own, begins in zip(labels.tolist(), starts.tolist(), strict=True)
        ]
        assert_close(log_likelihood[row], torch.stack(scores).logsumexp(0))


def test_states_start_with_a_key_each():
    model = PhraseModel(CONFIG, VOCABULARY_SIZE, NUM_KEYS)
    own = model.looks_up.argmax(-1)
    assert own[:2].tolist() == [4, 5]  # there are two real keys, and a third state without one
    assert model.looks_up[2].eq(0).all()
    assert model.reluctance[:2].gt(0).all()
    assert model.reluctance[2] == 0
    assert model.words[:2].eq(0).all()
    assert model.words[2].ne(0).any()
    assert model.ends.sign().tolist() == [-1, -1, 1]
