"""Runs that learn to write from sources, as whole as those of sentences alone."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from models.data.batches import collate
from models.data.corpus import Corpus
from models.data.tasks import encode_task
from models.errors import RunError, SettingError
from models.runs import load_run
from models.training.fit import fit
from models.training.module import TrainingModule
from tests.models.training.conftest import EPOCHS, STEPS, logged, outcome, tiny
from tests.models.training.killing import Bomb, survives

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse", "ignore:.*`ckpt_path`")

FALLING = {"learning_rate": 0.01, "final_learning_rate": 0.001}
CONFIG = replace(tiny(model={"source_dropout": 0.5}, training=FALLING), task="data2text")


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    """A run and its model as it was at the end."""
    run = tmp_path_factory.mktemp("runs") / "run"
    return run, fit(CONFIG, corpus, run).model.eval()


@pytest.fixture(scope="module")
def uninterrupted(trained):
    return trained[0]


@pytest.fixture
def rates(monkeypatch):
    """The learning rate of each step of the runs to come."""
    found, step = [], TrainingModule.optimizer_step

    def recording(self, epoch, index, optimizer, *given):
        step(self, epoch, index, optimizer, *given)
        found.append(optimizer.param_groups[0]["lr"])

    monkeypatch.setattr(TrainingModule, "optimizer_step", recording)
    return found


def changed(corpus: Corpus, **parts) -> Corpus:
    """The same sentences; `parts` tell, by its number, what else an example has."""
    splits = {
        split: [
            replace(example, **{name: part(number, example) for name, part in parts.items()})
            for number, example in enumerate(examples)
        ]
        for split, examples in corpus.splits.items()
    }
    return Corpus(corpus.name, splits, corpus.min_count)


def in_pairs(corpus: Corpus) -> Corpus:
    """Two sentences are about one thing."""
    return changed(corpus, group=lambda number, _: str(number // 2))


def test_it_learns(uninterrupted):
    bounds = logged(uninterrupted, "dev/bound")
    assert len(bounds) == EPOCHS
    assert bounds[-1] < bounds[0] - 1
    assert len(logged(uninterrupted, "train/log_variance_ratio")) == EPOCHS * STEPS // 2


@pytest.mark.parametrize("estimator", ["rnnlm", "reinforce-ms"])
def test_paraphrases(estimator, corpus, tmp_path):
    training = {"epochs": 1, "variance_every": 0}
    config = tiny(objective={"estimator": estimator}, training=training)
    fit(replace(config, task="paraphrase"), in_pairs(corpus), tmp_path)
    assert all(map(math.isfinite, logged(tmp_path, "dev/bound")))
    assert load_run(tmp_path, "best").step == STEPS


def test_killed_once(corpus, tmp_path, uninterrupted):
    """The optimizer's state, which is compared too, has the learning rate."""
    assert not survives(Bomb("on_train_batch_start", 6), CONFIG, corpus, tmp_path)
    fit(CONFIG, corpus, tmp_path, resume=True)
    assert outcome(tmp_path) == outcome(uninterrupted)


def test_the_learning_rate_falls_evenly_to_the_last_step(corpus, tmp_path, rates):
    training = {"epochs": 2, "variance_every": 0, **FALLING}
    fit(tiny(objective={"estimator": "rnnlm"}, training=training), corpus, tmp_path)
    falls = [before - after for before, after in pairwise(rates)]
    assert (len(rates), rates[0], rates[-1]) == (2 * STEPS, 0.01, 0.001)
    assert falls == pytest.approx([0.009 / (2 * STEPS - 1)] * (2 * STEPS - 1))


def test_a_resumed_run_has_the_same_learning_rates(corpus, tmp_path, rates):
    training = {"epochs": 2, "variance_every": 0, **FALLING}
    config = tiny(objective={"estimator": "rnnlm"}, training=training)
    fit(config, corpus, tmp_path / "whole")
    whole = rates.copy()
    rates.clear()
    assert not survives(Bomb("on_train_batch_end", 5), config, corpus, tmp_path / "parts")
    fit(config, corpus, tmp_path / "parts", resume=True)
    assert rates == [*whole[:5], *whole[4:]]  # the fifth step was not saved


def test_the_learning_rate_stays_if_not_told(corpus, tmp_path, rates):
    training = {"epochs": 1, "learning_rate": 0.01, "variance_every": 0}
    fit(tiny(objective={"estimator": "rnnlm"}, training=training), corpus, tmp_path)
    assert rates == [0.01] * STEPS


def test_mixed_precision(corpus, tmp_path):
    """Near to what full precision comes to."""
    training, bounds = {"epochs": 1, "variance_every": 0}, []
    for precision in ("32-true", "bf16-mixed"):
        config = tiny(training=training, machine={"precision": precision})
        module = fit(replace(config, task="data2text"), corpus, tmp_path / precision)
        assert all(part.isfinite().all() for part in module.parameters())
        bounds += logged(tmp_path / precision, "dev/bound")
    assert bounds[1] == pytest.approx(bounds[0], rel=0.02)


def test_the_model_comes_back(corpus, trained):
    run, model = trained
    loaded = load_run(run, "last")
    assert loaded.config == CONFIG
    assert loaded.vocabulary == (corpus.vocabulary, corpus.keys)
    batch = collate(encode_task("data2text", corpus.splits["dev"], loaded.vocabulary))
    states = loaded.model.posterior(batch).mode[None]
    with torch.no_grad():
        found, expected = (m.log_joint(batch, states) for m in (loaded.model, model))
    assert_close(found, expected, atol=0, rtol=0)
    assert found.total().isfinite().all()


def test_another_task_is_refused(corpus, uninterrupted):
    with pytest.raises(RunError, match="other settings, see task;"):
        fit(replace(CONFIG, task="paraphrase"), corpus, uninterrupted, resume=True)


def test_other_keys_are_refused(corpus, tmp_path, uninterrupted):
    """Though the sentences are the same."""
    run = shutil.copytree(uninterrupted, tmp_path / "run")
    other = changed(corpus, table=lambda _, example: (*example.table, ("colour", "red")))
    with pytest.raises(RunError, match="other words"):
        fit(CONFIG, other, run, resume=True)


@pytest.mark.parametrize("task", ["data2text", "paraphrase"])
def test_a_corpus_that_does_not_fit_the_task(task, corpus, tmp_path):
    bare = changed(corpus, table=lambda *_: (), group=lambda *_: "")
    with pytest.raises(SettingError, match=f"{task} learns from"):
        fit(replace(tiny(), task=task), bare, tmp_path)
    assert not (tmp_path / "checkpoints").exists()
