"""A process that was killed from outside, wherever it happened to be."""

from __future__ import annotations

import time

import pytest

from models.runs import LAST, checkpoint_path, load_checkpoint, read_metrics
from models.training.fit import fit
from tests.models.training.conftest import outcome, tiny
from tests.models.training.processes import PATIENCE, kill, prepared, training

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")


def wait_for_epoch(number, run, process):
    """Until its validation is in the log."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if (run / "metrics.csv").exists():
            rows = read_metrics(run / "metrics.csv")
            if any(int(row["epoch"]) >= number and row["metric"] == "dev/ppl" for row in rows):
                return
        time.sleep(0.02)
    pytest.fail(run.with_suffix(".log").read_text())


def test_killed_from_outside(corpus, tmp_path):
    """In the midst of training; the epoch in which it happened is brought to its end."""
    run = tmp_path / "killed"

    def config(epochs):
        settings = tiny(training={"epochs": epochs, "variance_every": 0})
        return prepared(settings, corpus, tmp_path / "corpus")

    with training(config(epochs=10_000), run) as process:
        wait_for_epoch(1, run, process)
        kill(process)
    epochs = load_checkpoint(checkpoint_path(run, LAST))["epoch"] + 1
    fit(config(epochs), corpus, run, resume=True)
    fit(config(epochs), corpus, tmp_path / "whole")
    assert outcome(run) == outcome(tmp_path / "whole")
