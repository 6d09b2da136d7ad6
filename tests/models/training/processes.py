"""Training by the command line, in processes of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import yaml

from models.config import RunConfig
from models.data.corpus import Corpus, save_corpus

ROOT = Path(__file__).parents[3]
PATIENCE = 300  # seconds until a process is taken for stuck


def prepared(config: RunConfig, corpus: Corpus, directory: Path) -> RunConfig:
    """For the corpus in that directory, where other processes find it."""
    save_corpus(corpus, directory)
    return replace(config, data=replace(config.data, corpus="e2e", directory=str(directory)))


@contextmanager
def training(config: RunConfig, run: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """`python -m models train`; nothing of it is left behind."""
    settings, log = run.with_suffix(".yaml"), run.with_suffix(".log")
    settings.write_text(yaml.safe_dump(config.as_dict()))
    command = [sys.executable, "-m", "models", "train", "--config", settings, "--run", run]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *options],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MASTER_PORT": str(free_port())},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # with the processes that it starts
        )
    try:
        yield process
    finally:
        kill(process)


def train(config: RunConfig, run: Path, *options: str) -> str:
    """To the end; what it printed."""
    with training(config, run, *options) as process:
        code = process.wait(PATIENCE)
    printed = run.with_suffix(".log").read_text()
    assert code == 0, printed
    return printed


def wait_for_line(start: str, run: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the process has printed something that begins so."""
    log, deadline = run.with_suffix(".log"), time.monotonic() + PATIENCE
    while start not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


def kill(process: subprocess.Popen[bytes]) -> None:
    """At once, with all the processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
