"""Busy neighbours spin while they are wanted, and never longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.neighbours import SPIN, beside, busy_neighbours

ROOT = Path(__file__).parent.parent
PATIENCE = 60  # seconds until a process is taken for stuck
WITH_NEIGHBOURS = """
import signal, time
from benchmarks.neighbours import busy_neighbours
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
with busy_neighbours(2):
    print("ready", flush=True)
    time.sleep(600)
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs /proc to see the processes of others"
)


def stat(pid: int) -> list[str]:
    """What /proc tells of a process, after its name: state, parent, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def spinning(parent: int) -> list[int]:
    """The neighbours that this process has started and that have not ended."""
    return [pid for pid in _processes() if _is_neighbour_of(pid, parent)]


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _is_neighbour_of(pid: int, parent: int) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return SPIN in arguments and str(parent) in arguments and stat(pid)[0] != "Z"
    except OSError:  # it has ended meanwhile
        return False


def gone(parent: int) -> bool:
    """Are they all gone, now or soon?"""
    deadline = time.monotonic() + PATIENCE
    while spinning(parent) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not spinning(parent)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_as_many_spin_as_were_asked_for(count: int) -> None:
    with busy_neighbours(count):
        neighbours = spinning(os.getpid())
        assert len(neighbours) == count
        niceness = {int(stat(pid)[16]) for pid in neighbours}
    assert niceness <= {os.getpriority(os.PRIO_PROCESS, 0)}
    assert spinning(os.getpid()) == []


def test_they_use_the_processor() -> None:
    def ticks(pid: int) -> int:
        return sum(map(int, stat(pid)[11:13]))

    with busy_neighbours(1):
        (neighbour,) = spinning(os.getpid())
        before, deadline = ticks(neighbour), time.monotonic() + PATIENCE
        while ticks(neighbour) < before + 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ticks(neighbour) >= before + 3


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_they_end_with_an_error(error: type[BaseException]) -> None:
    with pytest.raises(error), busy_neighbours(2):
        raise error
    assert spinning(os.getpid()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_they_end_with_the_process_that_wanted_them(how: signal.Signals) -> None:
    """By Ctrl-C, or killed so that it cannot end them."""
    command = [sys.executable, "-c", WITH_NEIGHBOURS]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, **quiet) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            assert len(spinning(process.pid)) == 2
            process.send_signal(how)
            process.wait(PATIENCE)
        finally:
            process.kill()
    assert gone(process.pid)


def test_titles_tell_of_them() -> None:
    assert [beside(count) for count in range(3)] == [
        "",
        ", beside 1 busy process",
        ", beside 2 busy processes",
    ]
