"""The templates of a run are made once, and again when they are not those of the model."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from models.commands import main
from models.data.corpus import Corpus, save_corpus
from models.errors import RunError
from models.runs import checkpoint_path, load_checkpoint, load_run
from models.templates.analysis import analyse
from models.templates.bank import TemplateBank
from models.templates.of_runs import FILE, analyse_run, map_templates, run_templates
from tests.models.tiny_runs import STATES, restaurants, train

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")
LONG_AGO = (1_000_000_000, 1_000_000_000)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return load_run(train(tmp_path_factory.mktemp("runs") / "run", training={"epochs": 1}), "best")


@pytest.fixture(scope="module")
def bank(trained):
    return run_templates(trained)


@pytest.fixture
def copied(trained, bank, tmp_path):
    """The run with its bank, old enough to see when that is made again."""
    folder = shutil.copytree(trained.folder, tmp_path / "copy")
    os.utime(folder / FILE, LONG_AGO)
    return folder


def made_again(run: Path) -> bool:
    return (run / FILE).stat().st_mtime != LONG_AGO[1]


def spoil_weights(run: Path) -> None:
    """As if trained again in a folder that still has the templates of before."""
    path = checkpoint_path(run, "best")
    saved = load_checkpoint(path)
    saved["state_dict"] = {name: -3 * value for name, value in saved["state_dict"].items()}
    torch.save(saved, path)


def test_templates_are_the_best_of_the_training_sentences(trained, bank):
    examples = trained.corpus().splits["train"]
    best = map_templates(trained, examples)
    assert bank.of_sentences() == [tuple(states) for states in best]
    assert bank.num_states == STATES
    keys = [{key for key, _ in example.table} for example in examples]
    assert [bank[number].keys for number in bank.sentences] == keys


def test_the_analysis_is_of_words_with_their_states(trained, bank):
    corpus = trained.corpus()
    words = [example.words for example in corpus.splits["train"]]
    assert analyse_run(bank, corpus) == analyse(bank.of_sentences(), words)


def test_a_stored_bank_is_used(copied, bank):
    """Even where there is no corpus any more."""
    trained = load_run(copied, "best")
    data = replace(trained.config.data, directory=str(copied / "absent"))
    found = run_templates(replace(trained, config=replace(trained.config, data=data)))
    assert list(found) == list(bank)
    assert not made_again(copied)


def test_commands_use_it_too(copied, capsys):
    for _ in range(2):
        main(["templates", str(copied)])
    first, second = capsys.readouterr().out.split(" templates of ")[1:]
    assert first.rsplit("\n", 1)[0] == second.rsplit("\n", 1)[0]
    assert not made_again(copied)


def test_another_model_has_another_bank(copied, bank):
    spoil_weights(copied)
    found = run_templates(load_run(copied, "best"))
    assert made_again(copied)
    assert found.of_sentences() != bank.of_sentences()
    os.utime(copied / FILE, LONG_AGO)
    assert list(run_templates(load_run(copied, "best"))) == list(found)
    assert not made_again(copied)


@pytest.mark.parametrize("kept", [0, 10, -100])
def test_a_damaged_bank_is_made_again(copied, bank, kept):
    (copied / FILE).write_bytes((copied / FILE).read_bytes()[:kept])
    main(["templates", str(copied)])
    assert list(TemplateBank.load(copied / FILE)) == list(bank)


def test_a_model_without_templates(tmp_path):
    run = train(tmp_path / "rnnlm", objective={"estimator": "rnnlm"}, training={"epochs": 1})
    with pytest.raises(RunError, match="rnnlm is a model without templates"):
        run_templates(load_run(run, "best"))
    assert not (run / FILE).exists()


def test_a_corpus_that_has_changed(trained, copied):
    """It is not what the model was trained on, so that no templates can be made from it."""
    (copied / FILE).unlink()
    corpus, directory = restaurants(), copied / "corpus"
    save_corpus(Corpus("e2e", {**corpus.splits, "train": corpus.splits["train"][:20]}), directory)
    data = replace(trained.config.data, directory=str(directory))
    changed = replace(trained, config=replace(trained.config, data=data), folder=copied)
    with pytest.raises(RunError, match="is not the one that this run was trained on"):
        run_templates(changed)
    assert not (copied / FILE).exists()
