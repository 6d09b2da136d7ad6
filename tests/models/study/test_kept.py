"""Results that are kept beside a study's file take the place of runs that are not there."""

from __future__ import annotations

import shutil

import pytest

from models.files import read_json, write_json
from models.study.kept import keep_results
from models.study.progress import conflicts, stages_to_do
from models.study.report import write_report
from models.study.runner import DIFFERENT, DONE, Runner
from tests.models.study.fake_runs import RUNS, by_name, evaluate, study, train

NLLS = (9.0, 8.0, 7.0, 6.0)


@pytest.fixture
def asked(tmp_path):
    """Two of its three runs are done."""
    whole = study(tmp_path)
    for name in ("rnnlm-0", "gumbel-1"):
        train(by_name(whole)[name], NLLS)
        evaluate(whole, by_name(whole)[name], 6.5)
    train(by_name(whole)["gumbel-0"], NLLS[:2])
    return whole


def page(asked) -> str:
    return write_report(asked).read_text()


def test_the_report_is_the_same_without_the_runs(asked, tmp_path):
    before = page(asked)
    assert keep_results(asked) == ["rnnlm-0", "gumbel-1"]
    for name in ("rnnlm-0", "gumbel-1"):
        shutil.rmtree(asked.folder / name)
    again = study(tmp_path)
    assert [run.name for run in again.runs if run.kept] == ["rnnlm-0", "gumbel-1"]
    assert page(again) == before
    assert keep_results(again) == []  # there is nothing new


def test_what_is_kept_is_small(asked):
    keep_results(asked)
    found = {path.name for path in asked.results.rglob("*") if path.is_file()}
    assert found == {"config.yaml", "metrics.csv", "test.json"}
    log = (asked.results / "gumbel-1" / "metrics.csv").read_text()
    assert log.startswith("step,epoch,metric,value\n3,0,dev/bound,10.0\n")


def test_only_the_others_are_left_to_do(asked, tmp_path):
    keep_results(asked)
    shutil.rmtree(asked.folder)
    again = study(tmp_path)
    left = [run.name for run in again.runs if next(stages_to_do(again, run), None)]
    assert left == ["gumbel-0"]
    runner = Runner(again, 1)
    assert [runner._job(run).state == DONE for run in again.runs] == [True, False, True]


def test_scores_are_kept(tmp_path):
    asked = study(tmp_path, runs={"a": RUNS["gumbel"] | {"seeds": [0]}}, score={"protocol": "e2e"})
    (run,) = asked.runs
    train(run, NLLS)
    evaluate(asked, run, 6.0)
    assert keep_results(asked) == []  # it is not scored yet
    write_json(run.folder / "scores.json", {"scores": {"BLEU": {"value": 0.5}}})
    assert keep_results(asked) == ["a-0"]
    assert read_json(asked.results / "a-0" / "scores.json") == read_json(run.folder / "scores.json")


def test_results_of_other_settings_are_not_taken(asked, tmp_path):
    keep_results(asked)
    shutil.rmtree(asked.folder)
    changed = {"rnnlm": RUNS["rnnlm"], "gumbel": {"settings": {"training": {"clip": 2}}}}
    changed["gumbel"]["seeds"] = [1]
    again = study(tmp_path, runs=changed)
    assert "training.clip" in conflicts(by_name(again)["gumbel-1"])
    assert "gumbel-1: has other settings than the study, see" in page(again)
    assert Runner(again, 1)._job(by_name(again)["gumbel-1"]).state == DIFFERENT


def test_a_run_that_is_there_comes_first(asked, tmp_path):
    keep_results(asked)
    assert not any(run.kept for run in study(tmp_path).runs)
    evaluate(asked, by_name(asked)["rnnlm-0"], 5.5)
    assert keep_results(asked) == ["rnnlm-0", "gumbel-1"]
    assert read_json(asked.results / "rnnlm-0" / "test.json")["scores"]["nll"] == 5.5
