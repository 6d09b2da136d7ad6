"""`python -m models evaluate --control`: what `measure_control` measures, for users."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from models.commands import main
from models.generation.control import measure_control
from models.generation.writer import Writer
from models.runs import load_run
from models.templates.of_runs import run_templates
from tests.models.tiny_runs import SIZES, train

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")
ONCE = {"epochs": 1}


def evaluate(run: Path, *options: object) -> None:
    main(["evaluate", str(run), "--samples", "1", *(str(option) for option in options)])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs") / "run", training=ONCE)


def test_tables_are_spread_over_the_split(run, tmp_path, capsys):
    path = tmp_path / "scores.json"
    evaluate(run, "--control", 2, "--split", "dev", "--limit", 1, "--json", path)
    printed = capsys.readouterr().out
    for shown in ("slot errors", "2 tables", "under templates", "adherence", "three orders"):
        assert shown in printed
    trained = load_run(run, "best")
    dev = trained.corpus().splits["dev"]
    chosen = [dev[0].table, dev[len(dev) // 2].table]  # all tables differ
    expected = measure_control(Writer(trained), run_templates(trained), chosen)
    assert json.loads(path.read_text())["control"] == asdict(expected)


def test_no_more_tables_than_there_are(run, tmp_path):
    path = tmp_path / "scores.json"
    evaluate(run, "--control", 99, "--json", path)
    assert json.loads(path.read_text())["control"]["tables"] == SIZES[2]


def test_only_if_asked(run, tmp_path, capsys):
    path = tmp_path / "scores.json"
    evaluate(run, "--json", path)
    assert "adherence" not in capsys.readouterr().out
    assert json.loads(path.read_text())["control"] is None


@pytest.mark.parametrize(
    ("task", "estimator"),
    [("paraphrase", "gumbel-crf-st"), ("data2text", "rnnlm")],
)
def test_what_cannot_be_measured_is_said_before_any_work(task, estimator, tmp_path, capsys):
    other = train(tmp_path / "run", task, objective={"estimator": estimator}, training=ONCE)
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        evaluate(other, "--control", 1)
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert "--control is for data2text runs with templates" in printed.err
    assert printed.out == ""
