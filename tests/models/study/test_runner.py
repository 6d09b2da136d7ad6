"""Processes of a study: how many at a time, what fails, what is left alone, and signals."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field

import pytest

from models.errors import RunError
from models.locks import locked
from models.study import runner as module
from models.study.runner import DONE, STOPPED, WAITING, Runner
from tests.models.study.fake_runs import RUNS, by_name, evaluate, study, train

WHOLE = (9.0, 8.0, 7.0, 6.0)
SLEEP = "import time; time.sleep(600)"


@dataclass
class Started:
    stages: list[tuple[str, str]] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TICK", 0.01)
    return study(tmp_path)


@pytest.fixture
def started(asked, monkeypatch):
    """What was started, and for which runs it shall fail; the others leave what they should."""
    started = Started()

    def start(stage, run):
        started.stages.append((run.name, stage.doing))
        if run.name in started.failing:
            run.log.write_text("step 1\nerror: no more disk\nuse another\n")
            return subprocess.Popen(["false"])
        if stage.doing == "training":
            train(run, WHOLE)
        else:
            evaluate(asked, run, 6.0)
        return subprocess.Popen(["true"])

    monkeypatch.setattr(module, "_started", start)
    return started


def states(runner: Runner) -> dict[str, str]:
    return {job.run.name: job.state for job in runner.jobs}


def unseen(jobs) -> None:
    pass


def test_all_stages_of_all_runs(asked, started):
    runner = Runner(asked, 1)
    runner.run(unseen)
    names = ["rnnlm-0", "gumbel-0", "gumbel-1"]
    assert started.stages == [(n, stage) for n in names for stage in ("training", "evaluating")]
    assert states(runner) == dict.fromkeys(names, DONE)


def test_first_seeds_come_first(asked, started, tmp_path):
    runner = Runner(study(tmp_path, runs=dict(reversed(RUNS.items()))), 1)
    runner.run(unseen)
    assert [name for name, _ in started.stages[::2]] == ["gumbel-0", "rnnlm-0", "gumbel-1"]
    assert [*states(runner)] == ["gumbel-0", "gumbel-1", "rnnlm-0"]


def test_what_is_done_is_not_started(asked, started):
    runs = by_name(asked)
    train(runs["rnnlm-0"], WHOLE)
    evaluate(asked, runs["rnnlm-0"], 6.0)
    train(runs["gumbel-1"], WHOLE)
    Runner(asked, 2).run(unseen)
    assert Counter(name for name, _ in started.stages) == {"gumbel-0": 2, "gumbel-1": 1}
    Runner(asked, 2).run(unseen)
    assert len(started.stages) == 3


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_so_many_at_a_time(processes, asked, started):
    most = 0

    def count(jobs):
        nonlocal most
        most = max(most, sum(job.process is not None for job in jobs))

    Runner(asked, processes).run(count)
    assert most == min(processes, 3)


def test_a_run_that_fails_stops_no_other(asked, started):
    started.failing.add("rnnlm-0")
    (asked.folder / "gumbel-0").mkdir(parents=True)
    (asked.folder / "gumbel-0" / "config.yaml").write_text("no settings")
    runner = Runner(asked, 1)
    runner.run(unseen)
    failed, broken, whole = runner.jobs
    assert (failed.state, failed.problem) == ("failed", "no more disk")
    assert broken.state == "failed"
    assert "config.yaml holds no settings" in broken.problem
    assert (whole.state, whole.problem) == (DONE, "")


def test_a_damaged_log_stops_no_other(asked, started):
    run = by_name(asked)["gumbel-0"]
    train(run, WHOLE)
    (run.folder / "metrics.csv").write_text("no,log\n")
    runner = Runner(asked, 1)
    runner.run(unseen)
    assert states(runner) == {"rnnlm-0": DONE, "gumbel-0": "failed", "gumbel-1": DONE}


def test_other_settings_are_left_alone(asked, started, tmp_path):
    train(by_name(asked)["gumbel-0"], WHOLE[:2])
    changed = study(tmp_path, runs={"gumbel": {"settings": {"training": {"clip": 2}}}})
    runner = Runner(changed, 1)
    runner.run(unseen)
    (job,) = runner.jobs
    assert started.stages == []
    assert job.state == "has other settings"
    assert job.problem == "training.clip, training.dev_samples; it is left alone"


def test_a_folder_has_one_study(asked, monkeypatch):
    with locked(asked.folder):
        monkeypatch.setattr("models.locks.HELD", set())  # this process is another now
        with pytest.raises(RunError, match="is being written to by process"):
            Runner(asked, 1).run(unseen)
        monkeypatch.undo()


def test_what_others_train_is_waited_for(asked, started):
    """Others go first; when it is free, its evaluation is all that is left."""
    run = by_name(asked)["rnnlm-0"]
    run.folder.mkdir(parents=True)
    runner, theirs = Runner(asked, 1), (run.folder / ".lock").open("w")
    fcntl.flock(theirs, fcntl.LOCK_EX)

    def look(jobs):
        first, *rest = jobs
        if all(job.state == DONE for job in rest) and not theirs.closed:
            assert first.state == "used by another process"
            train(run, WHOLE)
            theirs.close()

    runner.run(look)
    assert states(runner) == dict.fromkeys(by_name(asked), DONE)
    assert started.stages[-1] == ("rnnlm-0", "evaluating")
    assert ("rnnlm-0", "training") not in started.stages


@pytest.fixture
def handled():
    """Lets a signal be heeded even where the tests ignore it, as under `nohup`, until the end."""
    before = {}

    def handle(number, handler=signal.default_int_handler):
        before[number] = signal.signal(number, handler)
        return handler

    yield handle
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_processes(number, asked, monkeypatch, handled):
    """They end, others are not started, and handlers are as before."""
    before = handled(number)
    sleeping = [sys.executable, "-c", SLEEP]
    monkeypatch.setattr(module, "_started", lambda stage, run: subprocess.Popen(sleeping))
    runner = Runner(asked, 2)
    processes = []

    def interrupt(jobs):
        processes.extend(job.process for job in jobs if job.process and not runner.signals)
        if not runner.signals:
            os.kill(os.getpid(), number)

    runner.run(interrupt)
    assert runner.signals == [number]
    assert signal.getsignal(number) == before
    assert [process.returncode for process in processes] == [-signal.SIGTERM] * 2
    assert states(runner) == {"rnnlm-0": STOPPED, "gumbel-0": STOPPED, "gumbel-1": WAITING}


def test_an_ignored_signal_stops_nothing(asked, started, handled):
    """Under `nohup` a study goes on when its terminal is closed."""
    handled(signal.SIGHUP, signal.SIG_IGN)
    runner = Runner(asked, 1)
    runner.run(lambda jobs: os.kill(os.getpid(), signal.SIGHUP))
    assert runner.signals == []
    assert states(runner) == dict.fromkeys(by_name(asked), DONE)


def test_an_error_leaves_no_process_behind(asked, monkeypatch):
    sleeping = [sys.executable, "-c", SLEEP]
    monkeypatch.setattr(module, "_started", lambda stage, run: subprocess.Popen(sleeping))
    runner = Runner(asked, 2)
    calls = []

    def breaks(jobs):
        calls.append([job.process for job in jobs if job.process])
        if len(calls) == 1:
            raise KeyError("a fault of ours")

    with pytest.raises(KeyError):
        runner.run(breaks)
    assert [process.returncode for process in calls[0]] == [-signal.SIGTERM] * 2
