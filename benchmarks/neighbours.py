"""Busy neighbours: processes that keep a core busy each, as on a machine that others use too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# It ends with the process that started it, even where that one was killed and could not end it.
SPIN = """
import os, sys
print("spinning", flush=True)
while os.getppid() == int(sys.argv[1]):
    for _ in range(100_000):
        pass
"""


@contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """Let `count` processes spin, from the first moment to the last, and end them whatever happens.

    They have our own niceness and may run on the cores that we may run on.
    """
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            processes.append(_start())
        for process in processes:
            process.stdout.readline()  # until it says that it spins
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    """Start one; Ctrl-C is for us to hear, so it has a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SPIN, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def beside(count: int) -> str:
    """How a title tells of the neighbours; empty without any."""
    if not count:
        return ""
    return f", beside {count} busy process{'es' if count > 1 else ''}"
