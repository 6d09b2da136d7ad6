"""Curves and comparisons from the logs that runs leave; folders that are no runs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.data.tasks import Task
from models.errors import RunError
from models.report.content import Report
from models.report.logs import CHARTS, comparison, metric_charts, read_log, read_logs, runs_like
from models.report.page import render
from models.training.run_files import MetricsFile
from tests.models.training.conftest import tiny

NAN = math.nan
COLUMNS = (
    *("run", "estimator", "hidden size", "states", "bound", "PPL", "neg. ELBO", "entropy"),
    *("states in use", "epoch of the best"),
)
NOT_A_CONFIG = [
    "",
    "a sentence",
    "[1, 2]",
    "{a: b",
    "objective: none",
    yaml.safe_dump(tiny().as_dict() | {"devices": 0}),
    yaml.safe_dump(tiny().as_dict() | {"objective": "few"}),
    yaml.safe_dump(tiny().as_dict() | {"model": {"colour": "red"}}),
]
NOT_A_LOG = ["step,epoch,metric,value\nfew,0,dev/bound,1.0\n", "a,b\n1,2\n", "step,metric\n3\n"]


def log(folder: Path, *rows: tuple[int, dict[str, float]], resumed: int | None = None) -> None:
    file = MetricsFile(folder / "metrics.csv", resumed)
    for step, metrics in rows:
        file.log_metrics(metrics, step)


def bounds(*values: float, first: int = 3) -> list[tuple[int, dict[str, float]]]:
    """After 3, 7, 11, ... steps."""
    return [(first + 4 * i, {"dev/bound": value}) for i, value in enumerate(values)]


def write_config(folder: Path, task: Task = "text", **changes: dict[str, Any]) -> None:
    config = replace(tiny(**changes), task=task)
    (folder / "config.yaml").write_text(yaml.safe_dump(config.as_dict()))


def make_run(folder: Path, *values: float, task: Task = "text", **changes: dict[str, Any]) -> Path:
    """With a log of dev bounds."""
    log(folder, *bounds(*values))
    write_config(folder, task, **changes)
    return folder


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", 9.0, 8.0, 8.5)


def test_a_run(run):
    found = read_log(run)
    assert found.name == "run"
    assert found.config == tiny()
    assert found.metrics == {"dev/bound": ((3, 9.0), (7, 8.0), (11, 8.5))}


def test_the_name_is_that_of_the_folder_however_it_is_given(run, monkeypatch):
    monkeypatch.chdir(run)
    assert read_log(Path(".")).name == "run"
    assert runs_like(Path(".")) == [run.resolve()]


def test_a_resumed_run_has_each_step_once(run):
    log(run, *bounds(7.0, 6.0, first=7), resumed=5)
    assert read_log(run).metrics["dev/bound"] == ((3, 9.0), (7, 7.0), (11, 6.0))


def test_a_row_cut_short_is_left_out(run):
    with (run / "metrics.csv").open("a") as file:
        file.write("15,3,dev/bound,0.")
    assert len(read_log(run).metrics["dev/bound"]) == 3


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ((9.0, 8.0, 8.5), 7),
        ((8.0, 8.0), 3),  # of equals the first is kept, as the checkpoint is
        ((NAN, 9.0, 8.0), 11),
        ((9.0, NAN, 9.5), 3),
        ((math.inf, 9.0), 7),
        ((NAN, NAN), None),
        ((), None),
    ],
)
def test_the_best_step(tmp_path, values, best):
    assert read_log(make_run(tmp_path / "run", *values)).best_step == best


def test_a_value_at_a_step(run):
    found = read_log(run)
    assert found.at("dev/bound", 7) == 8.0
    assert found.at("dev/bound", 8) is None
    assert found.at("dev/bound", None) is None
    assert found.at("dev/ppl", 7) is None


def assert_no_run(folder: Path) -> None:
    with pytest.raises(RunError) as caught:
        read_log(folder)
    assert str(caught.value).startswith(str(folder))


@pytest.mark.parametrize("name", ["config.yaml", "metrics.csv"])
def test_a_missing_file(run, name):
    (run / name).unlink()
    assert_no_run(run)


@pytest.mark.parametrize("text", NOT_A_CONFIG)
def test_a_config_of_something_else(run, text):
    (run / "config.yaml").write_text(text)
    assert_no_run(run)


@pytest.mark.parametrize("text", NOT_A_LOG)
def test_a_log_of_something_else(run, text):
    (run / "metrics.csv").write_text(text)
    assert_no_run(run)


def test_bytes_that_are_no_text(run):
    (run / "config.yaml").write_bytes(b"\xff\xfe\xfa")
    assert_no_run(run)


def test_runs_like_it_are_those_with_its_task_and_corpus(tmp_path):
    own = make_run(tmp_path / "b", 1.0, task="data2text", data={"corpus": "e2e"})
    alike = make_run(
        tmp_path / "a", task="data2text", data={"corpus": "e2e"}, objective={"estimator": "rnnlm"}
    )
    make_run(tmp_path / "task", data={"corpus": "e2e"})
    make_run(tmp_path / "corpus", task="data2text")
    make_run(tmp_path / "deeper" / "run", task="data2text", data={"corpus": "e2e"})
    assert runs_like(own) == [alike.resolve(), own.resolve()]


@pytest.mark.parametrize("text", NOT_A_CONFIG)
def test_what_is_no_run_is_passed_over(run, text):
    (run.parent / "other").mkdir()
    (run.parent / "other" / "config.yaml").write_text(text)
    assert runs_like(run) == [run.resolve()]


def test_runs_like_none(tmp_path):
    with pytest.raises(RunError, match="absent is not the folder of a run"):
        runs_like(tmp_path / "absent")


def test_each_run_is_read_once(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = make_run(tmp_path / "other", 1.0)
    found = read_logs([run, other, Path("run"), tmp_path / "other" / ".." / "run"])
    assert [log.name for log in found] == ["run", "other"]


def test_runs_of_one_name_go_by_their_paths(run, tmp_path):
    same = make_run(tmp_path / "elsewhere" / "run", 1.0)
    other = make_run(tmp_path / "other", 1.0)
    names = [log.name for log in read_logs([run, same, other])]
    assert names == [str(run), str(same), "other"]


def test_charts_are_of_what_some_run_has(run, tmp_path):
    other = make_run(tmp_path / "other")
    log(other, (3, {"dev/bound": 7.0, "dev/entropy": 2.0, "knobs/beta": 0.1}))
    found = metric_charts(read_logs([run, other]))
    assert [chart.title for chart in found] == ["dev/bound", "dev/entropy"]
    assert [chart.meaning for chart in found] == [CHARTS["dev/bound"], CHARTS["dev/entropy"]]
    curves = [[(curve.run, curve.points) for curve in chart.curves] for chart in found]
    assert curves[0] == [("run", ((3, 9.0), (7, 8.0), (11, 8.5))), ("other", ((3, 7.0),))]
    assert curves[1] == [("other", ((3, 2.0),))]


def test_no_chart_of_nothing(tmp_path):
    assert metric_charts([read_log(make_run(tmp_path / "run"))]) == ()


def test_a_comparison_is_where_each_run_was_best(tmp_path):
    latent = make_run(tmp_path / "latent")
    scores = {"dev/ppl": 4.5, "dev/neg_elbo": 8.0, "dev/entropy": 2.5, "dev/states_in_use": 3.0}
    worse = {"dev/bound": 9.0, "dev/ppl": 5.0, "dev/neg_elbo": 9.0}
    log(latent, (3, worse), (7, {"dev/bound": 8.0, **scores}), (11, worse))
    language_model = make_run(
        tmp_path / "rnnlm", 7.0, model={"hidden_size": 9}, objective={"estimator": "rnnlm"}
    )
    found = comparison(read_logs([latent, language_model]))
    assert found.columns == COLUMNS
    assert found.rows == (
        ("latent", "gumbel-crf-st", 8, 3, 8.0, 4.5, 8.0, 2.5, 3, 2),
        ("rnnlm", "rnnlm", 9, None, 7.0, None, None, None, None, 1),
    )
    assert isinstance(found.rows[0][8], int)


def test_a_run_without_validation_is_compared_too(tmp_path):
    [row] = comparison([read_log(make_run(tmp_path / "run"))]).rows
    assert row == ("run", "gumbel-crf-st", 8, 3, *[None] * 6)


def test_numbers_that_are_none_are_shown_as_such(tmp_path):
    run = make_run(tmp_path / "run")
    log(run, (3, {"dev/bound": 8.0, "dev/ppl": NAN, "dev/states_in_use": NAN}))
    found = comparison([read_log(run)])
    assert found.rows[0][4] == 8.0
    assert math.isnan(found.rows[0][5])
    assert render(Report("runs", comparison=found)).count("not a number") == 2
