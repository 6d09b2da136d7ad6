"""What a report says of a run is what the run, asked directly, says itself."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from models.data.tables import format_table, parse_table
from models.generation.writer import Writer
from models.report.collect import TASKS, collect
from models.report.content import Report, coloured
from models.report.logs import comparison, metric_charts, read_logs
from models.runs import load_run
from models.templates.analysis import analyse
from models.templates.of_runs import map_templates, run_templates
from tests.models.tiny_runs import STATES, train

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")
TABLES, TEMPLATES = 3, 2


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = train(tmp_path_factory.mktemp("runs") / "run", training={"epochs": 1})
    return load_run(run, "best")


@pytest.fixture(scope="module")
def report(trained):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.report.collect.TABLES", TABLES)
        patch.setattr("models.report.collect.TEMPLATES", TEMPLATES)
        return collect(trained, [trained.folder])


@pytest.fixture(scope="module")
def dev(trained):
    return trained.corpus().splits["dev"]


def test_facts(report, trained):
    facts = dict(report.facts)
    assert report.title == "run: gumbel-crf-st"
    assert (facts["task"], facts["corpus"]) == (TASKS["data2text"], "e2e")
    assert (facts["states"], facts["hidden size"], facts["steps trained"]) == ("3", "8", "4")
    assert facts["words"] == str(len(trained.vocabulary.words))


def test_numbers_are_those_of_the_log(report, trained):
    """The run itself is not compared with itself."""
    logs = read_logs([trained.folder])
    assert report.charts == metric_charts(logs)
    assert "dev/bound" in [chart.title for chart in report.charts]
    assert report.comparison == comparison(logs)
    assert len(report.comparison.rows) == 1


def test_sentences_have_their_best_states(report, trained, dev):
    best = zip(dev, map_templates(trained, dev), strict=True)
    assert report.sentences == tuple(coloured(example.words, own) for example, own in best)


def test_sentences_are_evenly_spread(trained, dev, monkeypatch):
    monkeypatch.setattr("models.report.collect.SENTENCES", 3)
    as_text = replace(trained, config=replace(trained.config, task="text"))
    found = collect(as_text, []).sentences
    words = [" ".join(text for _, text in sentence).split() for sentence in found]
    assert words == [list(dev[place].words) for place in (0, 3, 6)]


def test_tables_are_those_of_the_dev_set(report, dev):
    labels = [table.label for table in report.browser]
    tables = list(dict.fromkeys(example.table for example in dev))
    places = [i * len(tables) // TABLES for i in range(TABLES)]
    assert labels == [format_table(tables[place]) for place in places]


def test_outputs_are_written_under_their_templates(report, trained):
    writer, bank = Writer(trained), run_templates(trained)
    for table in report.browser:
        request = writer.from_table(parse_table(table.label))
        assert len(table.outputs) == TEMPLATES
        assert len({output.template for output in table.outputs}) == TEMPLATES
        for output in table.outputs:
            [expected] = writer.write([request], [output.template])
            assert output.text == expected.text
            assert output.runs == coloured(expected.words, expected.states)
            number = re.match(r"template @(\d+); log p per word -\d+\.\d\d$", output.note)[1]
            assert bank[int(number)].states == output.template


def test_templates_are_listed_once_and_all_used(report):
    used = [output.template for table in report.browser for output in table.outputs]
    assert set(report.templates) == set(used)
    assert len(set(report.templates)) == len(report.templates)


def test_what_states_stand_for(report, trained):
    examples = trained.corpus().splits["train"]
    best = map_templates(trained, examples)
    found = analyse(best, [example.words for example in examples])
    longer = [ngram for ngram in found.ngrams if len(ngram.states) > 1]
    assert report.ngrams == tuple(longer)
    assert sum(state.share for state in report.states) == pytest.approx(1)
    assert [state.state for state in report.states] == list(range(STATES))
    assert report.states == found.states


def test_sentences_alone_have_no_browser(trained):
    found = collect(replace(trained, config=replace(trained.config, task="text")), [])
    assert found.browser == ()
    assert found.ngrams
    assert dict(found.facts)["task"] == TASKS["text"]


def test_a_model_without_templates_shows_none(trained):
    model = cast(Any, SimpleNamespace(latent=False))
    found = collect(replace(trained, model=model), [])
    assert dict(found.facts)["states"] == "none"
    assert found == Report(
        found.title, found.facts, charts=found.charts, comparison=found.comparison
    )
