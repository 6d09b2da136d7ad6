"""Without context, a state is scored by its word alone, and a word by its state alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from models.config import Knobs, ModelConfig, ObjectiveConfig, RunConfig, Schedule
from models.data.batches import Batch
from models.errors import SettingError
from models.vae.template_vae import TemplateVAE
from tests.models.conftest import CONFIG, VOCABULARY_SIZE

BATCH = Batch(torch.tensor([[4, 5, 4, 2], [5, 4, 5, 2]]), torch.tensor([4, 4]))
ALONE = Knobs(context_dropout=1.0)


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = replace(CONFIG, dropout=0.0, word_scores=True)
    return TemplateVAE(config, VOCABULARY_SIZE).double().train()


def test_the_same_word_has_the_same_scores(model):
    alone = model.posterior(BATCH, ALONE).emissions
    assert_close(alone[0, 0], alone[0, 2])
    assert_close(alone[0, 1], alone[1, 0])
    together = model.posterior(BATCH).emissions
    assert not torch.allclose(together[0, 0], together[0, 2])


def test_words_depend_on_their_own_state_alone(model):
    """Changing the first state changes the score of the first word only."""
    states = torch.zeros(1, 2, 4, 3, dtype=torch.float64)
    states[..., 0] = 1.0
    other = states.clone()
    other[:, :, 0] = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    one_word = Batch(BATCH.words[:, :1], torch.tensor([1, 1]))

    def change(batch: Batch, steps: int) -> torch.Tensor:
        scores = [model.log_joint(batch, z[:, :, :steps], ALONE).words for z in (states, other)]
        return scores[1] - scores[0]

    assert_close(change(BATCH, 4), change(one_word, 1))


def test_it_is_for_training_only(model):
    model.eval()
    assert_close(
        model.posterior(BATCH, ALONE).emissions,
        model.posterior(BATCH).emissions,
    )


def test_whole_sentences_lose_their_context(model):
    torch.manual_seed(0)
    many = BATCH.repeat(50)
    alone = model.posterior(BATCH, ALONE).emissions[0]
    together = model.posterior(BATCH).emissions[0]
    some = model.posterior(many, Knobs(context_dropout=0.5)).emissions[::2]
    lost = [torch.allclose(one, alone) for one in some]
    assert all(a or torch.allclose(one, together) for a, one in zip(lost, some, strict=True))
    assert 0 < sum(lost) < len(lost)


def test_it_needs_scores_of_words():
    for schedule in (Schedule(1.0, 0.0, 1.0), Schedule(0.0, 1.0, 1.0)):
        objective = ObjectiveConfig(context_dropout=schedule)
        with pytest.raises(SettingError, match="word_scores"):
            RunConfig(objective=objective)
    RunConfig(model=ModelConfig(word_scores=True), objective=objective)
