"""Two processes on one CPU learn what one process learns."""

from __future__ import annotations

from collections import Counter

import pytest
from torch.testing import assert_close

from models.config.schedules import Schedule
from models.restaurants.corpus import synthetic_corpus
from models.runs import load_run, read_metrics
from models.training.fit import fit
from tests.models.training.conftest import logged, outcome, tiny
from tests.models.training.processes import prepared, train

STEPS = 3  # in an epoch, of batches that both processes have half of


@pytest.fixture
def config(tmp_path):
    """Takes changes of settings, and how many processes."""
    corpus = synthetic_corpus(num_train=16 * STEPS, num_dev=10, num_test=1)

    def make(devices=2, **changes):
        changes = {"data": {"batch_size": 16}, "machine": {"devices": devices}, **changes}
        return prepared(tiny(**changes), corpus, tmp_path / "corpus")

    return make


def check_log(run, epochs):
    """Each number once, though two processes had it."""
    rows = Counter((row["step"], row["metric"]) for row in read_metrics(run / "metrics.csv"))
    assert set(rows.values()) == {1}
    assert [step for step, metric in rows if metric == "dev/bound"] == [
        str(STEPS * epoch - 1) for epoch in range(1, epochs + 1)
    ]


def test_gradients_are_averaged(config, tmp_path):
    """Without random numbers: to rounding, the weights that one process comes to."""
    settings = {
        "model": {"dropout": 0.0},
        "objective": {"estimator": "rnnlm", "word_dropout": Schedule(0.0)},
        "training": {"epochs": 2, "patience": 5},
    }
    alone, together = tmp_path / "alone", tmp_path / "together"
    one, two = config(1, **settings), config(2, **settings)
    fit(one, synthetic_corpus(16 * STEPS, 10, 1), alone)
    train(two, together)
    check_log(together, epochs=2)
    found, expected = (load_run(run, "last").model.state_dict() for run in (together, alone))
    assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert logged(together, "dev/bound") == pytest.approx(logged(alone, "dev/bound"), rel=1e-5)


def test_templates(config, tmp_path):
    """Each process draws its own; both come to the same numbers about the dev set."""
    run = tmp_path / "run"
    train(config(training={"epochs": 1}), run)
    check_log(run, epochs=1)
    assert len(logged(run, "train/log_variance_ratio")) == 1
    assert load_run(run, "best").step == STEPS


@pytest.mark.slow
def test_resumed(config, tmp_path):
    one, two = (config(training={"epochs": epochs}) for epochs in (1, 2))
    train(two, tmp_path / "whole")
    train(one, tmp_path / "parts")
    train(two, tmp_path / "parts", "--resume")
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")
