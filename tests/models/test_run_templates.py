"""Templates of a run: made once, and anew when the model has changed."""

from __future__ import annotations

import pytest
import torch

from models import run_templates as module
from models import runs
from models.data.synthetic import synthetic_corpus
from models.errors import RunError
from models.run_templates import FILE, run_templates
from models.templates import map_templates
from tests.models.generation.runs import small_corpus, untrained_run


@pytest.fixture
def trained(tmp_path):
    return untrained_run(folder=tmp_path)


@pytest.fixture
def builds(monkeypatch) -> list[int]:
    """How many sentences each call finds templates of."""
    sizes = []

    def counting(model, examples, vocabulary):
        sizes.append(len(examples))
        return map_templates(model, examples, vocabulary)

    monkeypatch.setattr(module, "map_templates", counting)
    return sizes


def test_templates_are_those_of_the_training_sentences(trained):
    bank = run_templates(trained, small_corpus())
    examples = small_corpus().splits["train"]
    templates = map_templates(trained.model, examples, trained.vocabulary.words)
    keys = [frozenset(key for key, _ in example.table) for example in examples]
    expected = {(tuple(z), k) for z, k in zip(templates, keys, strict=True)}
    assert {(stored.states, stored.keys) for stored in bank} == expected
    assert sum(stored.count for stored in bank) == len(examples)
    assert bank.num_states == trained.config.model.num_states
    for stored in bank:
        assert tuple(templates[stored.example]) == stored.states


def test_they_are_kept(trained, builds):
    first, second = (run_templates(trained, small_corpus()) for _ in range(2))
    assert builds == [50]
    assert list(first) == list(second)
    assert (trained.folder / FILE).exists()


def test_a_kept_bank_needs_no_corpus(trained, monkeypatch):
    run_templates(trained, small_corpus())
    monkeypatch.setattr(type(trained), "corpus", lambda self: pytest.fail("not needed"))
    assert len(run_templates(trained)) > 0


def test_other_parameters_make_other_templates(trained, builds):
    """Even at the same step: someone may have trained in the same folder again."""
    before = run_templates(trained, small_corpus())
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in trained.model.inference_network.parameters():
            parameter.normal_()
    after = run_templates(trained, small_corpus())
    assert builds == [50, 50]
    assert [stored.states for stored in before] != [stored.states for stored in after]


@pytest.mark.parametrize("content", [b"", b"no bank"])
def test_a_damaged_file_is_made_again(trained, builds, content):
    (trained.folder / FILE).write_bytes(content)
    bank = run_templates(trained, small_corpus())
    assert builds == [50]
    assert list(run_templates(trained, small_corpus())) == list(bank)
    assert builds == [50]


def test_the_corpus_must_be_that_of_the_run(trained, monkeypatch):
    monkeypatch.setattr(runs, "open_corpus", lambda *_: synthetic_corpus(5, 1, 1))
    with pytest.raises(RunError, match="not the one"):
        run_templates(trained)


def test_a_model_without_templates(tmp_path):
    with pytest.raises(RunError, match="without templates"):
        run_templates(untrained_run(estimator="rnnlm", folder=tmp_path), small_corpus())
