"""A log that goes on where a run was resumed."""

from __future__ import annotations

import pytest

from models.runs import read_metrics
from models.training import run_files
from models.training.run_files import MetricsFile


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "metrics.csv"


def write(file: MetricsFile, steps: range) -> None:
    for step in steps:
        file.log_metrics({"loss": step / 3, "epoch": step // 2}, step)


def row(step: int) -> dict[str, str]:
    """As `write` makes it."""
    return {
        "step": str(step),
        "epoch": str(step // 2),
        "metric": "loss",
        "value": repr(step / 3),
    }


def test_rows(path):
    write(MetricsFile(path), range(3))
    assert path.read_text().splitlines()[:2] == ["step,epoch,metric,value", "0,0,loss,0.0"]
    assert read_metrics(path) == [row(0), row(1), row(2)]


def test_numbers_come_back_exactly(path):
    values = [1 / 3, 1e-300, float("nan"), float("inf"), -0.0]
    file = MetricsFile(path)
    for value in values:
        file.log_metrics({"some": value}, 0)
    assert [repr(float(found["value"])) for found in read_metrics(path)] == [*map(repr, values)]


def test_several_numbers_of_a_step(path):
    MetricsFile(path).log_metrics({"a": 1, "b": 2, "epoch": 3}, 7)
    found = [(r["step"], r["epoch"], r["metric"], r["value"]) for r in read_metrics(path)]
    assert found == [("7", "3", "a", "1.0"), ("7", "3", "b", "2.0")]


def test_what_is_logged_is_there_at_once(path):
    file = MetricsFile(path)
    assert read_metrics(path) == []
    write(file, range(1))
    assert read_metrics(path) == [row(0)]


def test_a_new_run_starts_a_new_file(path):
    write(MetricsFile(path), range(3))
    MetricsFile(path)
    assert read_metrics(path) == []


def test_a_resumed_run_runs_later_steps_again(path):
    write(MetricsFile(path), range(5))
    write(MetricsFile(path, resumed_step=3), range(3, 7))
    assert read_metrics(path) == [row(step) for step in range(7)]


def test_a_row_cut_short_is_left_out(path):
    """Wherever it was cut: half a number is a number too."""
    write(MetricsFile(path), range(2))
    whole = path.read_bytes()
    for length in range(len(b"1,0,loss,0.3333333333333333\r\n")):
        path.write_bytes(whole + b"1,0,loss,0.3333333333333333\r\n"[:length])
        assert read_metrics(path) == [row(0), row(1)]
        write(MetricsFile(path, resumed_step=2), range(2, 3))
        assert read_metrics(path) == [row(0), row(1), row(2)]


def test_a_kill_while_the_log_is_resumed_loses_nothing(path, monkeypatch):
    write(MetricsFile(path), range(3))

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_files.csv, "DictWriter", interrupt)
        with pytest.raises(KeyboardInterrupt):
            MetricsFile(path, resumed_step=2)
    assert read_metrics(path) == [row(0), row(1), row(2)]


def test_one_process_writes(path, monkeypatch):
    monkeypatch.setattr(run_files.rank_zero_only, "rank", 1)
    write(MetricsFile(path), range(1))
    assert not path.exists()
