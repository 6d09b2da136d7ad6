"""Studies from files: their runs, and what is said of a file that is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.commands.train import settings_reader
from models.config import RunConfig
from models.config.schedules import Schedule
from models.errors import DataError
from models.study.plan import as_options, read_study

SETTLE = settings_reader()
FILES = sorted(Path("models/studies").glob("*.yaml"))


def read(content: Any, folder: Path):
    path = folder / "study.yaml"
    path.write_text(
        content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
    )
    return read_study(path, folder / "runs", SETTLE)


def test_settings_become_options():
    settings = {"task": "text", "model": {"word_scores": True, "dropout": 0.1}, "x": None, "y": {}}
    found = ["--task=text", "--model.word_scores=true", "--model.dropout=0.1", "--x=null"]
    assert list(as_options(settings)) == found


def test_groups_and_seeds(tmp_path):
    objective = {"estimator": "rnnlm", "word_dropout": {"start": 0, "epochs": 0}}
    groups = {"plain": {"label": "RNNLM", "seeds": [3, 1], "settings": {"objective": objective}}}
    study = read({"config": "models/configs/demo.yaml", "runs": groups | {"other": {}}}, tmp_path)
    assert [run.name for run in study.runs] == ["plain-3", "plain-1", "other-0"]
    assert [run.label for run in study.runs] == ["RNNLM", "RNNLM", "other"]
    assert [run.config.training.seed for run in study.runs] == [3, 1, 0]
    first, _, other = study.runs
    assert first.folder == tmp_path / "runs" / "plain-3"
    assert first.log == tmp_path / "runs" / "plain-3.log"
    assert first.config.objective.estimator == "rnnlm"
    assert first.config.objective.word_dropout == Schedule(0.0, 0.0, 0.0, 3.0)  # the rest: shared
    shared = SETTLE(["--config=models/configs/demo.yaml"])
    assert other.config == replace(shared, machine=replace(shared.machine, threads=1))
    assert list(study.groups()) == ["plain", "other"]
    assert study.evaluate is study.score is None


def test_a_group_may_have_a_file_of_settings_of_its_own(tmp_path):
    groups = {"phrases": {"config": "models/configs/demo-phrases.yaml"}, "words": {}}
    study = read({"config": "models/configs/demo.yaml", "runs": groups}, tmp_path)
    assert [run.config.model.posterior for run in study.runs] == ["semi-markov", "linear-chain"]


def test_a_grid_has_all_combinations(tmp_path):
    grid = {"objective.estimator": ["simple", "rloo"], "model.num_states": [3, 4]}
    study = read({"runs": {"a": {"label": "A", "seeds": [0, 1], "grid": grid}}}, tmp_path)
    names = ["a-simple-3", "a-simple-4", "a-rloo-3", "a-rloo-4"]
    assert list(study.groups()) == names
    assert len(study.runs) == 8
    run = study.groups()["a-rloo-3"][1]
    assert (run.label, run.seed, run.name) == ("A, estimator rloo, num_states 3", 1, "a-rloo-3-1")
    assert (run.config.objective.estimator, run.config.model.num_states) == ("rloo", 3)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "a study has names with values, not None"),
        ("{a: [", "while parsing"),
        ({"runs": {}}, "runs has names with values, not {}"),
        ({"config": "models/configs/demo.yaml"}, "runs has names with values, not None"),
        ({"runs": {"a": {}}, "evalute": {}}, "a study has no 'evalute'; did you mean evaluate?"),
        ({"runs": {"a": {}}, "evaluate": 3}, "evaluate has names with values, not 3"),
        ({"runs": {"a": {"seed": [1]}}}, "runs.a has no 'seed'; did you mean seeds?"),
        ({"runs": {"a": {"seeds": []}}}, "runs.a.seeds: different numbers in a list, not []"),
        ({"runs": {"a": {"seeds": [1, 1]}}}, "runs.a.seeds: different numbers in a list"),
        ({"runs": {"a": {"seeds": [-1]}}}, "runs.a.seeds: different numbers in a list"),
        ({"runs": {"a": {"seeds": 1}}}, "runs.a.seeds: different numbers in a list, not 1"),
        ({"runs": {"a": {"grid": {"task": []}}}}, "runs.a.grid.task: different values in a list"),
        ({"runs": {"a/b": {}}}, "runs.a/b: 'a/b' is no name for a folder"),
        ({"runs": {"a": {"label": "x"}, "x": {}}}, "groups need labels of their own, not x, x"),
        (
            {"runs": {"a-text": {}, "a": {"grid": {"task": ["text", "data2text"]}}}},
            "groups need names of their own, not a-text-0, a-text-0, a-data2text-0",
        ),
        ({"config": "none.yaml", "runs": {"a": {}}}, "runs.a: --config: File does not exist"),
        (
            {"runs": {"a": {"settings": {"objectve": {"estimator": "simple"}}}}},
            "runs.a: there is no option --objectve.estimator; did you mean --objective.estimator?",
        ),
        (
            {"runs": {"a": {"settings": {"objective": {"estimator": "simpel"}}}}},
            "runs.a: objective.estimator: name must be one of gumbel-crf,",
        ),
        (
            {"runs": {"a": {"settings": {"training": {"epochs": 0}}}}},
            "epochs must be at least 1, not 0",
        ),
    ],
)
def test_what_is_wrong_is_told_in_a_line(content, told, tmp_path):
    with pytest.raises(DataError) as caught:
        read(content, tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'study.yaml'}: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_there_are_files():
    assert {"table1", "demo", "data2text", "captions", "phrases"} == {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files(path):
    """They can be read, and their runs train with one thread."""
    study = read_study(path, Path("runs"), SETTLE)
    assert study.runs
    assert all(run.config.machine.threads == 1 for run in study.runs)


def test_table_1_has_the_runs_that_were_trained_by_hand():
    """With the command line, before there were studies: they are found by name, and fit."""
    study = read_study(Path("models/studies/table1.yaml"), Path("runs"), SETTLE)
    by_hand = {
        "rnnlm-2": [
            "rnnlm",
            "--model.word_layer=false",
            *(f"--objective.word_dropout.{x}=0" for x in ("start", "after", "epochs")),
        ],
        "gumbel-crf-st-1": ["gumbel-crf-st"],
        "reinforce-ms-0": ["reinforce-ms"],
    }
    runs: dict[str, RunConfig] = {run.name: run.config for run in study.runs}
    for name, (estimator, *options) in by_hand.items():
        own = [f"--objective.estimator={estimator}", f"--training.seed={name[-1]}", *options]
        typed = SETTLE(["--config=models/configs/e2e-table1.yaml", *own])
        assert runs[name].differences(typed) == [], name
