"""Training with estimators of each kind: what it does, and what it says on the way."""

from __future__ import annotations

import math

import pytest

from models.config.schedules import Schedule
from models.errors import SettingError
from models.training import fit as module
from models.training.fit import fit
from models.training.module import TrainingModule
from tests.models.training.conftest import EPOCHS, STEPS, logged, tiny

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")
ONE_EPOCH = {"epochs": 1, "variance_every": 0}
ESTIMATORS = ("rnnlm", "gumbel-crf", "gumbel-crf-st", "pm-mrf", "reinforce", "reinforce-ms-c")


@pytest.fixture
def losses(monkeypatch):
    """Of each step of the runs to come."""
    found, step = [], TrainingModule.training_step

    def recording(self, *given):
        loss = step(self, *given)
        found.append(loss.item())
        return loss

    monkeypatch.setattr(TrainingModule, "training_step", recording)
    return found


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_epoch(estimator, corpus, tmp_path, losses, monkeypatch, capsys):
    monkeypatch.setattr("models.training.module.LOG_EVERY", 2)
    fit(tiny(objective={"estimator": estimator}, training=ONE_EPOCH), corpus, tmp_path)
    assert len(losses) == STEPS
    assert all(map(math.isfinite, losses))
    assert logged(tmp_path, "train/loss") == losses[1::2]
    assert logged(tmp_path, "knobs/word_dropout") == [0.75, 0.25]
    assert all(norm > 0 for norm in logged(tmp_path, "train/gradient_norm"))
    assert len(logged(tmp_path, "dev/bound")) == 1
    assert len(logged(tmp_path, "dev/entropy")) == (estimator != "rnnlm")
    assert capsys.readouterr().out.startswith("epoch 1, step 4: bound ")


def test_it_learns(corpus, tmp_path):
    training = {"epochs": 4, "learning_rate": 0.02, "variance_every": 0}
    fit(tiny(training=training), corpus, tmp_path)
    bounds = logged(tmp_path, "dev/bound")
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0] - 5


def test_the_seed_decides(corpus, tmp_path, losses):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fit(tiny(training={**ONE_EPOCH, "seed": seed}), corpus, tmp_path / name)
    first, second, other = (losses[i : i + STEPS] for i in range(0, 3 * STEPS, STEPS))
    assert first == second != other


def test_mixed_precision(corpus, tmp_path, losses):
    """On a CPU: the loss is that of full precision, roughly."""
    for name in ("32-true", "bf16-mixed"):
        config = tiny(machine={"precision": name}, training=ONE_EPOCH)
        fit(config, corpus, tmp_path / name)
    assert losses[STEPS:] == pytest.approx(losses[:STEPS], rel=0.02)
    assert losses[STEPS:] != losses[:STEPS]


def test_dev_sentences(corpus):
    """As many as asked, evenly spread; all of them if there are fewer."""
    sizes = {n: tiny(training={"dev_sentences": n}) for n in (0, 3, 10, 99)}
    found = {n: module.dev_sentences(config, corpus) for n, config in sizes.items()}
    assert [len(sentences) for sentences in found.values()] == [10, 3, 10, 10]
    assert found[3] == found[0][::3][:3]


def test_early_stopping(corpus, tmp_path):
    """Nothing is learnt at this rate."""
    training = {"epochs": 9, "patience": 2, "learning_rate": 0.0}
    fit(tiny(objective={"estimator": "rnnlm"}, training=training), corpus, tmp_path)
    bounds = logged(tmp_path, "dev/bound")
    assert len(bounds) == 3
    assert len(set(bounds)) == 1


def test_schedules_follow_the_steps(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("models.training.module.LOG_EVERY", 1)
    objective = {
        "temperature": Schedule(1.0, 0.01, 2, shape="geometric"),
        "beta": Schedule(0.1),
        "word_dropout": Schedule(1.0, 0.0, 1),
    }
    fit(tiny(objective=objective, training={"variance_every": 0}), corpus, tmp_path)
    temperatures = [0.01 ** (min(step, 8) / 8) for step in range(EPOCHS * STEPS)]
    assert logged(tmp_path, "knobs/temperature") == pytest.approx(temperatures)
    assert logged(tmp_path, "knobs/beta") == [0.1] * EPOCHS * STEPS
    assert logged(tmp_path, "knobs/word_dropout") == [1, 0.75, 0.5, 0.25] + [0] * 8


def test_exact_where_there_are_too_many_templates(corpus, tmp_path):
    """Which is known before any step, and leaves no run behind."""
    config = tiny(objective={"estimator": "exact"})
    with pytest.raises(SettingError, match=r"exact sums over all templates: .* have 3\^2\d"):
        fit(config, corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()
