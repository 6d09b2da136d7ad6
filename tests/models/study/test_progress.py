"""What is left to do for a run, by what is in its folder."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from models.runs import BEST, LAST, checkpoint_path
from models.study.plan import StudyRun
from models.study.progress import best_epoch, conflicts, epochs, has_ended, stages_to_do
from tests.models.study.fake_runs import RUNS, by_name, evaluate, study, train

WHOLE = (9.0, 8.0, 7.0, 6.0)


def doing(asked, run) -> list[str]:
    return [stage.doing for stage in stages_to_do(asked, run)]


def with_settings(run: StudyRun, **changes: int) -> StudyRun:
    training = replace(run.config.training, **changes)
    return replace(run, config=replace(run.config, training=training))


@pytest.fixture
def asked(tmp_path):
    return study(tmp_path)


@pytest.fixture
def run(asked):
    return by_name(asked)["gumbel-0"]


def test_a_run_that_is_not_there(asked, run):
    (training, evaluating) = stages_to_do(asked, run)
    assert training.arguments == ["train", *run.options, f"--run={run.folder}"]
    own = ["--show=0", "--samples=3", f"--json={run.folder / 'test.json'}", "--threads=1"]
    assert evaluating.arguments == ["evaluate", str(run.folder), *own]


def test_a_run_that_was_stopped_is_resumed(asked, run):
    train(run, WHOLE[:2])
    assert not has_ended(run)
    assert next(stages_to_do(asked, run)).arguments[-1] == "--resume"


def test_what_is_done_is_not_done_again(asked, run):
    train(run, WHOLE)
    assert has_ended(run)
    assert doing(asked, run) == ["evaluating"]
    evaluate(asked, run, 6.0)
    assert doing(asked, run) == []


def test_killed_after_the_last_epoch_and_before_it_was_saved(run):
    train(run, WHOLE, seen=12)
    assert not has_ended(run)


@pytest.mark.parametrize("damage", [b"", b"no checkpoint"])
def test_a_damaged_checkpoint_is_for_training_to_mend(damage, run):
    train(run, WHOLE)
    checkpoint_path(run.folder, LAST).write_bytes(damage)
    assert not has_ended(run)


@pytest.mark.parametrize(("patience", "ended"), [(0, False), (1, True), (2, True), (3, False)])
def test_patience(patience, ended, run):
    """The best of three epochs was the first; the study asks for four."""
    train(run, (6.0, 7.0, 8.0))
    assert best_epoch(run) == 1
    assert has_ended(with_settings(run, patience=patience)) == ended


def test_more_epochs_than_before(run):
    train(run, WHOLE)
    longer = with_settings(run, epochs=5)
    assert conflicts(longer) == []
    assert not has_ended(longer)


def test_other_settings(run):
    train(run, WHOLE)
    assert conflicts(run) == []
    assert conflicts(with_settings(run, seed=7, epochs=9)) == ["training.seed"]


def test_an_evaluation_of_another_checkpoint_or_with_other_samples(asked, run):
    train(run, WHOLE)
    evaluate(asked, run, 6.0)
    os.utime(checkpoint_path(run.folder, BEST))
    os.utime(run.folder / "test.json", (2, 2))
    assert doing(asked, run) == ["evaluating"]
    evaluate(asked, run, 6.0, samples=2)
    assert doing(asked, run) == ["evaluating"]


def test_writing_and_scoring(tmp_path):
    asked = study(
        tmp_path,
        score={"protocol": "e2e"},
        generate={"decoding": {"beam": 3}},
        evaluate={"control": 5, "split": "dev"},
    )
    run, language_model = by_name(asked)["gumbel-0"], by_name(asked)["rnnlm-0"]
    assert doing(asked, run) == ["training", "evaluating", "writing", "scoring"]
    _, evaluating, writing, scoring = stages_to_do(asked, run)
    assert "--control=5" in evaluating.arguments
    assert f"--json={run.folder / 'dev.json'}" in evaluating.arguments
    _, without, *_ = stages_to_do(asked, language_model)
    assert "--control=5" not in without.arguments  # there is nothing to control
    written = run.folder / "generated"
    where = ["--split=dev", f"--folder={written}", "--threads=1"]
    assert writing.arguments == ["generate", str(run.folder), "--decoding.beam=3", *where]
    files = [f"--{name}={written / name}.txt" for name in ("outputs", "references", "inputs")]
    to = f"--json={run.folder / 'scores.json'}"
    assert scoring.arguments == ["score", "--protocol=e2e", *files, to]
    train(run, WHOLE)
    evaluate(asked, run, 6.0)
    written.mkdir()
    (written / "inputs.txt").write_text("")  # the last file that is written
    assert doing(asked, run) == ["scoring"]
    (run.folder / "scores.json").write_text("{}")
    assert doing(asked, run) == []


def test_nothing_but_training(tmp_path):
    asked = study(tmp_path, evaluate=None, runs={"a": RUNS["gumbel"]})
    assert doing(asked, asked.runs[0]) == ["training"]


def test_a_log_that_grows_is_read_again(run):
    train(run, WHOLE[:1])
    assert epochs(run, "dev/nll") == [9.0]
    train(run, WHOLE)
    assert epochs(run, "dev/nll") == [9.0, 8.0, 7.0, 6.0]
