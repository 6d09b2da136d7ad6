"""Templates of phrases through all commands, from training to a report."""

from __future__ import annotations

import io
import json
import sys

import pytest

from models.commands import main
from models.data.batches import encode, in_order
from models.runs import load_run
from models.templates.of_runs import map_templates, run_templates
from models.templates.segments import Phrases, segments
from tests.models.commands.test_commands import SETTINGS
from tests.models.tiny_runs import restaurants

LONGEST = 3
TABLE = "name[The Vaults], eatType[pub], food[French]"
SHORT = ["--decoding.max_words", "8", "--decoding.beam", "2"]

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.corpora.synthetic_corpus", restaurants)
        phrases = ["--model.posterior", "semi-markov", "--model.max_phrase", LONGEST]
        taught = ["--objective.phrase_model", "{start: 1.0, end: 0.0, after: 0.5}"]
        run = tmp_path_factory.mktemp("runs") / "phrases"
        command("train", *SETTINGS, *phrases, *taught, "--task", "data2text", "--run", run)
        yield run


def command(*arguments):
    main([str(argument) for argument in arguments])


def generated(folder, capsys, monkeypatch, *options):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TABLE.encode())))
    capsys.readouterr()
    command("generate", folder, *SHORT, "--json", *options)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_best_templates_are_those_of_the_posterior(folder):
    trained = load_run(folder, "best")
    examples = trained.corpus().splits["dev"]
    templates = map_templates(trained, examples)
    batches = in_order(encode([e.words for e in examples], trained.vocabulary.words), 1)
    for template, example, batch in zip(templates, examples, batches, strict=True):
        assert isinstance(template, Phrases)
        assert len(template) == len(example.words)
        posterior = trained.model.posterior(batch)
        labels, starts = posterior.labels_of(posterior.argmax)
        n = len(template)
        assert Phrases(labels[0, :n].tolist(), starts[0, :n].tolist()) == template
        assert max(end - start for _, start, end in segments(template)) <= LONGEST


def test_evaluate_prints_the_boundaries(folder, capsys):
    command("evaluate", folder, "--samples", 2, "--control", 2)
    assert "boundary F1" in capsys.readouterr().out


def test_sentences_follow_stored_phrases(folder, capsys, monkeypatch):
    bank = run_templates(load_run(folder, "best"))
    for number in (0, len(bank) - 1):
        (record,) = generated(folder, capsys, monkeypatch, "--template", f"@{number}")
        assert Phrases(record["states"], record["starts"]) == bank[number].states


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_free_sentences_have_phrases(method, folder, capsys, monkeypatch):
    (record,) = generated(folder, capsys, monkeypatch, "--decoding.method", method)
    phrases = Phrases(record["states"], record["starts"])
    assert len(phrases) == len(record["words"]) > 0
    assert phrases.starts[0]
    assert max(end - start for _, start, end in segments(phrases)) <= LONGEST


def test_states_that_a_user_writes(folder, capsys, monkeypatch):
    (record,) = generated(folder, capsys, monkeypatch, "--template", "1 1 1 1 0")
    assert record["states"] == [1, 1, 1, 1, 0]
    assert record["starts"] == [True, False, False, True, True]


def test_reports_and_lists_of_templates_are_made(folder, capsys):
    command("report", folder)
    command("templates", folder, "--limit", 2)
    bank = run_templates(load_run(folder, "best"))
    state, start, end = segments(bank[0].states)[0]
    example = load_run(folder, "best").corpus().splits["train"][bank[0].example]
    shown = " ".join(example.words[start:end]) + f"/{state}"
    assert shown in " ".join(capsys.readouterr().out.split())
