"""Ctrl-C and SIGTERM save and stop; the run goes on as if nothing had happened."""

from __future__ import annotations

import os
import signal

import lightning
import pytest

from models.commands import main
from models.errors import RunError, TrainingStoppedError
from models.locks import locked
from models.runs import LAST, checkpoint_path, load_checkpoint
from models.training import fit as module
from models.training.fit import fit
from tests.models.training.conftest import outcome, tiny
from tests.models.training.processes import PATIENCE, prepared, training, wait_for_line

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")
CONFIG = tiny(training={"epochs": 2, "variance_every": 0, "checkpoint_every": 100})


class Sends(lightning.Callback):
    """Signals, to its own process, in the n-th call of a hook."""

    def __init__(self, hook: str, n: int, number: int) -> None:
        self.left, self.number = n, number
        setattr(self, hook, self._tick)

    def _tick(self, *_, **__) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.number)


def stopped_by(callback, corpus, run) -> TrainingStoppedError:
    usual = module._callbacks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_callbacks", lambda *given: [callback, *usual(*given)])
        with pytest.raises(TrainingStoppedError) as caught:
            fit(CONFIG, corpus, run)
    return caught.value


@pytest.fixture(scope="module")
def expected(corpus, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "whole"
    fit(CONFIG, corpus, run)
    return outcome(run)


@pytest.mark.parametrize(
    ("hook", "n", "step"),
    [
        ("on_train_batch_start", 1, 0),  # nothing to save yet
        ("on_train_batch_start", 3, 2),
        ("on_before_optimizer_step", 2, 2),
        ("on_validation_end", 1, 4),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops(hook, n, step, number, corpus, tmp_path, expected):
    """Between checkpoints too; handlers are as before, and the folder is free."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    told = stopped_by(Sends(hook, n, number), corpus, tmp_path)
    assert told.exit_code == 128 + number
    command = f"`python -m models train --resume --run {tmp_path}`"
    assert str(told) == f"stopped after {step} steps, which are saved; go on with {command}"
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    if step:
        assert load_checkpoint(checkpoint_path(tmp_path, LAST))["global_step"] == step
    fit(CONFIG, corpus, tmp_path, resume=True)
    assert outcome(tmp_path) == expected


def test_a_signal_after_the_last_step_lets_it_end(corpus, tmp_path, expected, monkeypatch):
    usual, sends = module._callbacks, Sends("on_validation_end", 2, signal.SIGTERM)
    monkeypatch.setattr(module, "_callbacks", lambda *given: [sends, *usual(*given)])
    fit(CONFIG, corpus, tmp_path)
    assert outcome(tmp_path) == expected


def test_by_the_command_line(corpus, tmp_path, capsys):
    """One process trains; another is refused; a signal stops the first, with one line."""
    run, config = tmp_path / "run", tiny(training={"epochs": 10_000, "variance_every": 0})
    with training(prepared(config, corpus, tmp_path / "corpus"), run) as process:
        wait_for_line("epoch 1,", run, process)
        with pytest.raises(SystemExit) as refused:
            main(["train", "--resume", "--run", str(run)])
        assert refused.value.code == 2
        assert f"is being written to by process {process.pid}" in capsys.readouterr().err
        with pytest.raises(RunError), locked(run):
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM
    assert_told(run)


def assert_told(run):
    """The last line of a run's output has the step of its last checkpoint."""
    last_line = run.with_suffix(".log").read_text().splitlines()[-1]
    step = load_checkpoint(checkpoint_path(run, LAST))["global_step"]
    assert last_line.startswith(f"stopped after {step} steps, which are saved; go on with")


@pytest.mark.slow
def test_one_of_two_processes_is_told(corpus, tmp_path):
    """Both stop before the same step."""
    changes = {"data": {"batch_size": 16}, "machine": {"devices": 2}}
    config = tiny(training={"epochs": 10_000, "variance_every": 0}, **changes)
    run = tmp_path / "run"
    with training(prepared(config, corpus, tmp_path / "corpus"), run) as process:
        wait_for_line("epoch 1,", run, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM
    assert_told(run)


class SendsAndLooks(Sends):
    """Once the first signal is there, the system itself handles others: it ends the process."""

    def _tick(self, *_, **__):
        super()._tick()
        if self.left == 0:
            found = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
            assert found == [signal.SIG_DFL, signal.SIG_DFL]


def test_a_second_signal_stops_at_once(corpus, tmp_path):
    stopped_by(SendsAndLooks("on_train_batch_start", 2, signal.SIGINT), corpus, tmp_path)
