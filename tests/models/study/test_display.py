"""What is shown while a study runs."""

from __future__ import annotations

import pytest

from models.study.display import shown
from models.study.runner import Job
from tests.models.study.fake_runs import by_name, study, train


@pytest.fixture
def jobs(tmp_path):
    runs = by_name(study(tmp_path))
    train(runs["gumbel-0"], (9.0, 8.5), minutes=1.25)
    return [Job(runs[name], iter(())) for name in ("rnnlm-0", "gumbel-0")]


def test_lines_for_what_is_new(jobs, capsys):
    with shown() as show:
        show(jobs)
        show(jobs)
        jobs[0].state = "training"
        show(jobs)
        jobs[0].state, jobs[0].problem = "failed", "no more disk"
        show(jobs)
    assert capsys.readouterr().out.splitlines() == [
        "rnnlm-0: waiting",
        "gumbel-0: waiting, 2 of 4 epochs, nll 8.500, 2.5 CPU minutes",
        "rnnlm-0: training",
        "rnnlm-0: failed, no more disk",
    ]


def test_a_table_in_a_terminal(jobs, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with shown() as show:
        show(jobs)
        jobs[0].state = "done"
        show(jobs)
    last = capsys.readouterr().out.split("┏")[-1]
    assert "│ rnnlm-0  │ done    │" in last
    assert "│ gumbel-0 │ waiting │ 2 of 4 epochs │ nll 8.500 │ 2.5 CPU minutes │" in last
