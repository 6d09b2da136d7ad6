"""`python -m models study`: processes that are stopped and resumed, what it says, its exit code."""

from __future__ import annotations

import os
import signal
import sys

import pytest
import yaml

from models.commands import main
from models.data.corpus import save_corpus
from models.runs import read_metrics
from models.study import runner as module
from models.study.runner import Runner
from tests.models.study.fake_runs import study as fake_study
from tests.models.study.fake_runs import train as fake_training
from tests.models.tiny_runs import restaurants

EPOCHS = 20


def study(*arguments: object) -> None:
    main(["study", *map(str, arguments)])


def exit_code(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        study(*arguments)
    return stopped.value.code


@pytest.fixture
def file(tmp_path):
    """Two runs of seconds."""
    save_corpus(restaurants(), tmp_path / "corpus")
    settings = {
        "data": {"corpus": "e2e", "directory": str(tmp_path / "corpus"), "batch_size": 10},
        "model": {"num_states": 3, "hidden_size": 8},
        "training": {"epochs": EPOCHS, "patience": 0},
        "accelerator": "cpu",
    }
    other = settings | {"objective": {"estimator": "rnnlm"}}
    runs = {"gumbel": {"settings": settings}, "rnnlm": {"settings": other}}
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump({"runs": runs}, sort_keys=False))
    return path


def test_some_seeds(tmp_path, capsys):
    path = tmp_path / "seeds.yaml"
    path.write_text(yaml.safe_dump({"runs": {"a": {"seeds": [0, 1, 2]}, "b": {"seeds": [3]}}}))
    study(path, "--folder", tmp_path, "--report", "--seeds", 1, 3)
    left = (tmp_path / "report.md").read_text().partition("### Not in the tables")[2]
    assert [line.split(":")[0] for line in left.splitlines() if line] == ["- a-1", "- b-3"]
    assert exit_code(path, "--report", "--seeds", 4) == 2
    assert "no run of" in capsys.readouterr().err


def test_stopped_and_resumed(file, tmp_path, capsys, monkeypatch):
    """After its first epoch a run is stopped with the study; both go on to the end."""
    folder = tmp_path / "runs"
    usual = Runner._advance
    monkeypatch.setattr(module, "TICK", 0.02)

    def stop_in_training(runner: Runner) -> bool:
        log = folder / "gumbel-0.log"
        if not runner.signals and log.exists() and "epoch 1," in log.read_text():
            os.kill(os.getpid(), signal.SIGTERM)
        return usual(runner)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "_advance", stop_in_training)
        assert exit_code(file, "--folder", folder) == 128 + signal.SIGTERM
    told = (
        f"stopped after 0 of 2 runs; go on with `python -m models study {file} --folder {folder}`"
    )
    assert capsys.readouterr().err.strip() == told
    log = (folder / "gumbel-0.log").read_text()
    assert "steps, which are saved" in log
    assert not (folder / "rnnlm-0").exists()
    study(file, "--folder", folder, "--processes", 2)
    printed = capsys.readouterr().out
    assert f"gumbel-0: done, {EPOCHS} of {EPOCHS} epochs, bound" in printed
    assert f"done: {folder}; next: python -m models study {file}" in printed
    assert (folder / "gumbel-0.log").read_text().count("--resume\n") == 1
    for name in ("gumbel-0", "rnnlm-0"):
        rows = read_metrics(folder / name / "metrics.csv")
        assert [row["metric"] for row in rows].count("dev/bound") == EPOCHS
    monkeypatch.setattr(module, "_started", None)  # nothing is left to start
    study(file, "--folder", folder)
    study(file, "--folder", folder, "--report")
    assert f"report: {folder / 'report.md'}" in capsys.readouterr().out


def test_what_failed_is_named(tmp_path, capsys, monkeypatch):
    """A run whose process fails, and one that is there with other settings."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "error: no such corpus"\necho "for $*"\nexit 2\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    for run in fake_study(tmp_path, runs={"other": {}}).runs:
        fake_training(run, (1.0,))
    settings = {"other": {"settings": {"training": {"clip": 2}}}, "new": {}}
    asked = fake_study(tmp_path, runs=settings)
    assert exit_code(asked.path, "--folder", asked.folder) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: 0 of 2 runs are done",
        "other-0 has other settings: training.clip; it is left alone",
        "new-0 failed: no such corpus",
    ]
    command = f"-m models train --training.seed=0 --threads=1 --run={asked.folder / 'new-0'}"
    log = (asked.folder / "new-0.log").read_text().splitlines()
    assert (log[0], log[-1]) == (f"$ python {command}", f"for {command}")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"evaluate": {"sample": 3}}, "evaluate: there is no option --sample"),
        ({"evaluate": {"samples": 0}}, "evaluate: --samples: "),
        ({"score": {"protocol": "e2f"}}, "score: --protocol: Expected a typing.Literal"),
        ({"runs": {"a": {"settings": {"objective": {"estimator": "rnn"}}}}}, "runs.a: objective"),
    ],
)
@pytest.mark.parametrize("options", [[], ["--report"]])
def test_a_file_that_is_wrong(changes, told, options, file, tmp_path, capsys):
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | changes))
    assert exit_code(file, "--folder", tmp_path / "runs", *options) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"error: {file}: {told}")
    assert printed.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_no_file(tmp_path, capsys):
    assert exit_code(tmp_path / "none.yaml") == 2
    assert "none.yaml: cannot be read: No such file" in capsys.readouterr().err
