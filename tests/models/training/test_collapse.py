"""Both kinds of posterior collapse are noticed, on models made to have them."""

from __future__ import annotations

import pytest
import torch

from models.config import ModelConfig
from models.data.batches import collate
from models.data.vocabulary import END
from models.training.fit import fit
from models.vae.likelihood import Scores, evaluate
from models.vae.template_vae import TemplateVAE
from tests.models.training.conftest import tiny

VOCABULARY_SIZE = 30
FORBIDDEN = -1000.0


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TemplateVAE(ModelConfig(num_states=3, hidden_size=8), VOCABULARY_SIZE).eval()


@torch.no_grad()
def scores(model, weight=0.0, bias=(0.0, 0.0, 0.0), transitions=0.0) -> Scores:
    """With this done to q, on sentences of random words and lengths."""
    network = model.inference_network
    network.scores.weight *= weight
    network.scores.bias.copy_(torch.tensor(bias))
    network.crf.transitions.copy_(torch.as_tensor(transitions))
    lengths = torch.randint(1, 8, (60,)).tolist()
    words = [torch.randint(4, VOCABULARY_SIZE, (length,)).tolist() for length in lengths]
    return evaluate(model, [collate([[*sentence, END] for sentence in words])], 1)


def test_healthy(model):
    found = scores(model, weight=20.0)
    assert 0.05 < found.entropy_share < 0.95
    assert found.collapse is None


def test_uniform(model):
    found = scores(model)
    assert found.entropy_share == pytest.approx(1)
    assert found.collapse.startswith("uniform: ")
    assert "lower beta" in found.collapse


def test_one_state_for_every_word(model):
    found = scores(model, bias=(0.0, 50.0, 0.0))
    assert found.position_entropy_share == pytest.approx(0)
    assert found.states_in_use == 1
    assert found.collapse.startswith("constant: ")
    assert "raise beta" in found.collapse


def test_the_same_template_for_every_sentence(model):
    """States 0, 1, 2, 2, ...: which one it is depends on the position alone."""
    transitions = torch.full((3, 3), FORBIDDEN)
    transitions[[0, 1, 2], [1, 2, 2]] = 0.0
    found = scores(model, bias=(50.0, 0.0, 0.0), transitions=transitions)
    assert found.states_in_use == 3
    assert found.position_entropy_share == pytest.approx(0)
    assert found.collapse.startswith("constant: ")


def test_states_that_depend_on_the_sentence_are_no_collapse(model):
    """Though each of them is certain."""
    found = scores(model, weight=1000.0)
    assert found.entropy_share < 0.05
    assert found.collapse is None


def test_a_run_warns(corpus, tmp_path):
    """A new model knows nothing of its templates, so it is uniform."""
    with pytest.warns(UserWarning, match="posterior collapse, uniform"):
        fit(tiny(training={"epochs": 1}), corpus, tmp_path)


def collapses(recwarn):
    return [one for one in recwarn if "posterior collapse" in str(one.message)]


def test_a_language_model_has_nothing_that_could_collapse(corpus, tmp_path, recwarn):
    fit(tiny(objective={"estimator": "rnnlm"}, training={"epochs": 1}), corpus, tmp_path)
    assert not collapses(recwarn)


def test_no_warning_without_need(corpus, tmp_path, monkeypatch, recwarn):
    monkeypatch.setattr(Scores, "collapse", None)
    fit(tiny(training={"epochs": 1}), corpus, tmp_path)
    assert not collapses(recwarn)
