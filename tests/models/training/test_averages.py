"""Means of the parameters over the latest steps: what is validated, saved and used."""

from __future__ import annotations

import lightning
import pytest
import torch

from models.data.batches import in_order
from models.errors import SettingError
from models.runs import LAST, PREFIX, checkpoint_path, load_checkpoint, load_run
from models.training import fit as module
from models.training.fit import dev_sentences, fit
from models.vae.likelihood import evaluate
from tests.models.training.conftest import EPOCHS, STEPS, logged, tiny

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")
SHARE = 0.5


class Parameters(lightning.Callback):
    """Those of the model after each step."""

    def __init__(self):
        self.known = []

    def on_train_batch_end(self, trainer, module, *_):
        self.known.append(torch.cat([p.detach().flatten() for p in module.parameters()]))


def trained(config, corpus, run, monkeypatch):
    parameters, usual = Parameters(), module._callbacks
    monkeypatch.setattr(module, "_callbacks", lambda *given: [parameters, *usual(*given)])
    return fit(config, corpus, run), parameters.known


def flat(state, like):
    return torch.cat([state[name].flatten() for name, _ in like.named_parameters()])


def test_the_saved_parameters_are_the_mean_over_the_latest_steps(corpus, tmp_path, monkeypatch):
    config = tiny(training={"average": SHARE})
    model, known = trained(config, corpus, tmp_path, monkeypatch)
    mean = known[0]
    for step, now in enumerate(known[1:], start=1):
        mean = mean + (now - mean) / (1 + SHARE * step)
    saved = load_checkpoint(checkpoint_path(tmp_path, LAST))
    assert len(known) == EPOCHS * STEPS
    assert torch.allclose(flat(saved["state_dict"], model), mean, atol=1e-6)
    assert torch.equal(flat(saved["current_model_state"], model), known[-1])
    assert not torch.allclose(mean, known[-1], atol=1e-6)
    run = load_run(tmp_path, LAST)
    of_model = {f"{PREFIX}{name}": x for name, x in run.model.state_dict().items()}
    assert torch.equal(flat(of_model, model), flat(saved["state_dict"], model))


def test_training_goes_its_way_without_the_mean(corpus, tmp_path, monkeypatch):
    runs = []
    for average in (0.0, SHARE):
        with monkeypatch.context() as patch:
            config = tiny(training={"average": average})
            runs.append(trained(config, corpus, tmp_path / f"{average}", patch)[1])
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


def test_the_dev_set_is_read_by_the_mean(corpus, tmp_path):
    config = tiny(objective={"estimator": "rnnlm"}, training={"average": SHARE})
    fit(config, corpus, tmp_path)
    run = load_run(tmp_path, LAST)
    scores = evaluate(run.model, in_order(dev_sentences(config, corpus), 100))
    assert logged(tmp_path, "dev/bound")[-1] == pytest.approx(scores.bound, rel=1e-5)


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_is_from_0_to_1(share):
    with pytest.raises(SettingError, match="average is a share, from 0 to 1"):
        tiny(training={"average": share})
