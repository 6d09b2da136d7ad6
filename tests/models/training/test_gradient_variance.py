"""Measuring the gradient's variance changes nothing."""

from __future__ import annotations

import math

import pytest
import torch

from models.data.batches import collate, encode
from models.data.tasks import corpus_vocabulary
from models.training.callbacks import GradientVariance
from models.training.fit import fit
from models.training.module import TrainingModule
from tests.models.training.conftest import EPOCHS, STEPS, logged, outcome, tiny

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")


def test_measuring_does_not_disturb_training(corpus, tmp_path):
    often, never = (tiny(training={"variance_every": every}) for every in (2, 0))
    fit(often, corpus, tmp_path / "often")
    fit(never, corpus, tmp_path / "never")
    measured = logged(tmp_path / "often", "train/log_variance_ratio")
    assert len(measured) == EPOCHS * STEPS / 2
    assert all(map(math.isfinite, measured))
    assert logged(tmp_path / "never", "train/log_variance_ratio") == []
    found, expected = outcome(tmp_path / "often"), outcome(tmp_path / "never")
    for part in ("weights", "optimizer", "best weights"):
        assert found[part] == expected[part]


def test_the_model_is_left_as_it_was(corpus):
    module = TrainingModule(tiny(), corpus_vocabulary(corpus), {}, STEPS).train()
    probe = collate(encode([e.words for e in corpus.splits["dev"]], corpus.vocabulary))
    first = GradientVariance(probe, every=1).measure(module)
    assert module.model.training
    assert all(parameter.grad is None for parameter in module.parameters())
    torch.manual_seed(5)
    assert GradientVariance(probe, every=1).measure(module) == first


def test_a_language_model_has_none(corpus, tmp_path):
    config = tiny(objective={"estimator": "rnnlm"}, training={"epochs": 1, "variance_every": 1})
    fit(config, corpus, tmp_path)
    assert logged(tmp_path, "train/log_variance_ratio") == []
