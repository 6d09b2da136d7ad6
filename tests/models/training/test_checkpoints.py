"""Checkpoints are whole, of plain types, and give back the model that was saved."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from models import runs
from models.data.batches import collate, encode
from models.data.tables import values_by_key
from models.data.tokens import learn_casing
from models.errors import RunError
from models.restaurants.corpus import synthetic_corpus
from models.runs import checkpoint_path, load_checkpoint, load_run
from models.training import fit as module
from models.training.fit import fit
from models.training.run_files import AtomicCheckpoints
from structdist import __version__
from tests.models.training.conftest import STEPS, tiny

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")
CONFIG = tiny(training={"epochs": 1})


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    """A run and its model as it was at the end."""
    run = tmp_path_factory.mktemp("runs") / "run"
    return run, fit(CONFIG, corpus, run).model.eval()


@pytest.mark.parametrize("name", ["best", "last"])
def test_no_code_is_needed_to_read_one(name, trained):
    saved = torch.load(checkpoint_path(trained[0], name), weights_only=True)
    assert saved["global_step"] == STEPS
    assert saved["structdist_run"]["config"] == CONFIG.as_dict()


def test_only_checkpoints_are_left(trained):
    names = sorted(path.name for path in (trained[0] / "checkpoints").iterdir())
    assert names == ["best.ckpt", "last.ckpt", "previous.ckpt"]


@pytest.mark.parametrize("name", ["best", "last"])
def test_the_model_comes_back(name, trained, corpus):
    run, model = trained
    loaded = load_run(run, name)
    assert (loaded.config, loaded.step) == (CONFIG, STEPS)
    assert (loaded.folder, loaded.checkpoint) == (run, name)
    assert loaded.vocabulary == (corpus.vocabulary, corpus.keys)
    assert loaded.casing == learn_casing(corpus.splits["train"])
    assert loaded.values == values_by_key(example.table for example in corpus.splits["train"])
    batch = collate(encode([e.words for e in corpus.splits["dev"]], loaded.vocabulary.words))
    with torch.no_grad():
        posterior = loaded.model.posterior(batch)
        assert_close(posterior.marginals, model.posterior(batch).marginals, atol=0, rtol=0)
        states = posterior.mode[None]
        found, expected = (m.log_joint(batch, states).total() for m in (loaded.model, model))
        assert_close(found, expected, atol=0, rtol=0)


def test_a_language_model_comes_back(corpus, tmp_path):
    config = tiny(objective={"estimator": "rnnlm"}, training={"epochs": 1})
    fit(config, corpus, tmp_path)
    assert not load_run(tmp_path, "last").model.latent


class Interrupted(BaseException):
    """As by a kill."""


def test_an_interrupted_write_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "best.ckpt"
    AtomicCheckpoints().save_checkpoint({"step": 1}, path)

    def interrupt(*_):
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", interrupt)
        with pytest.raises(Interrupted):
            AtomicCheckpoints().save_checkpoint({"step": 2}, path)
    assert load_checkpoint(path) == {"step": 1}
    AtomicCheckpoints().save_checkpoint({"step": 3}, path)
    assert load_checkpoint(path) == {"step": 3}
    assert list(tmp_path.iterdir()) == [path]


def test_settings_survive_a_kill_while_they_are_written(corpus, tmp_path, monkeypatch):
    """A resumed run writes them anew: it can be resumed again."""
    fit(CONFIG, corpus, tmp_path)
    before = (tmp_path / "config.yaml").read_text()
    longer = tiny(training={"epochs": 2})

    def interrupt(*_, **__):
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(module.yaml, "safe_dump", interrupt)
        with pytest.raises(Interrupted):
            fit(longer, corpus, tmp_path, resume=True)
    assert (tmp_path / "config.yaml").read_text() == before
    fit(longer, corpus, tmp_path, resume=True)
    assert load_run(tmp_path, "last").step == 2 * STEPS


def test_a_run_that_does_not_exist(tmp_path):
    with pytest.raises(RunError, match=r"best\.ckpt does not exist; train with `python -m models"):
        load_run(tmp_path / "absent", "best")


def test_the_corpus_it_was_trained_on(trained, corpus, monkeypatch):
    loaded = load_run(trained[0], "last")
    monkeypatch.setattr(runs, "open_corpus", lambda *_: corpus)
    assert loaded.corpus() is corpus


def test_another_corpus_is_refused(trained, monkeypatch):
    loaded = load_run(trained[0], "last")
    other = synthetic_corpus(num_train=9, num_dev=1, num_test=1)
    monkeypatch.setattr(runs, "open_corpus", lambda *_: other)
    with pytest.raises(RunError, match="synthetic is not the one that this run was trained on"):
        loaded.corpus()


def saved_otherwise(run, tmp_path, change):
    """A copy of the run's last checkpoint, changed."""
    saved = load_checkpoint(checkpoint_path(run, "last"))
    change(saved)
    path = checkpoint_path(tmp_path, "last")
    path.parent.mkdir()
    torch.save(saved, path)
    return tmp_path


def test_a_run_of_before_loads(trained, corpus, tmp_path, monkeypatch):
    """As earlier versions wrote them: no version nor values of tables, settings of REINFORCE."""

    def as_before(saved):
        about = saved["structdist_run"]
        del about["version"], about["values"], about["config"]["objective"]["estimator_settings"]
        about["config"]["objective"] |= {"num_samples": 5, "constant_baseline": 0.1}
        about["config"]["objective"]["reward_scale"] = 1.0

    loaded = load_run(saved_otherwise(trained[0], tmp_path, as_before), "last")
    assert loaded.config == CONFIG
    monkeypatch.setattr(runs, "open_corpus", lambda *_: corpus)
    assert loaded.values == load_run(trained[0], "last").values


@pytest.mark.parametrize(
    ("version", "told"), [("0.0.9", "written by 0.0.9"), (None, "by an unnamed version")]
)
def test_a_run_that_no_longer_fits_says_which_version_wrote_it(trained, tmp_path, version, told):
    def as_another(saved):
        saved["structdist_run"]["version"] = version
        if version is None:
            del saved["structdist_run"]["version"]
        saved["structdist_run"]["config"]["model"]["wings"] = 2

    run = saved_otherwise(trained[0], tmp_path, as_another)
    with pytest.raises(RunError, match=rf"{told} of structdist, and this is {__version__}"):
        load_run(run, "last")
