"""A run whose numbers are none any more stops, and says what to do."""

from __future__ import annotations

import math

import pytest
import torch

from models.commands import main
from models.data.corpus import save_corpus
from models.errors import TrainingDivergedError
from models.training import fit as module
from models.training.fit import fit
from tests.models.training.conftest import tiny

COMMAND = """train --data.corpus e2e --data.batch_size 15 --model.num_states 3 --model.hidden_size 8
    --training.epochs 1 --accelerator cpu --threads 1"""


def poison(monkeypatch, value):
    """Every new model has this among its weights."""
    make = module.TrainingModule

    def make_poisoned(*given, **named):
        made = make(*given, **named)
        with torch.no_grad():
            made.model.decoder.output.to_words.weight[4, 0] = value
        return made

    monkeypatch.setattr(module, "TrainingModule", make_poisoned)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_it(value, corpus, tmp_path, monkeypatch):
    poison(monkeypatch, value)
    with pytest.raises(TrainingDivergedError, match="diverged at step 0: loss nan") as caught:
        fit(tiny(), corpus, tmp_path)
    for advice in ("training.learning_rate", "training.clip", "--precision"):
        assert advice in str(caught.value)


def test_resumed_it_diverges_again(corpus, tmp_path):
    """The first step at this rate spoils the weights, the second finds out."""
    config = tiny(training={"learning_rate": 1e30})
    for resume in (False, True):
        with pytest.raises(TrainingDivergedError, match="step 1"):
            fit(config, corpus, tmp_path, resume)


def test_the_command_says_so_too(corpus, tmp_path, capsys):
    save_corpus(corpus, tmp_path / "corpus")
    folders = ["--data.directory", tmp_path / "corpus", "--run", tmp_path / "run"]
    with pytest.raises(SystemExit) as stopped:
        main([*COMMAND.split(), *map(str, folders), "--training.learning_rate", "1e30"])
    assert stopped.value.code == 1
    assert "error: training diverged at step 1" in capsys.readouterr().err
