"""Threads sleep while they wait and freed memory is kept, unless the user has chosen otherwise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from models.process import CHOICES, POLICY, wait_passively

ROOT = Path(__file__).parent.parent
COMMANDS = (["benchmarks", "--help"], ["models", "data", "--help"])


def openmp_settings(command: list[str], **chosen: str) -> dict[str, str]:
    """What torch's OpenMP says of its settings as it is loaded."""
    kept = {name: value for name, value in os.environ.items() if name not in CHOICES}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        env={**kept, "OMP_DISPLAY_ENV": "VERBOSE", **chosen},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(re.findall(r"(\w+) ?= ?'(\w+)'", done.stderr))
    if POLICY not in found:
        pytest.skip("torch's OpenMP does not show its settings")
    return found


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_threads_wait_passively(command: list[str]) -> None:
    assert openmp_settings(command)[POLICY] == "PASSIVE"


def test_a_choice_of_the_user_is_obeyed() -> None:
    assert openmp_settings(COMMANDS[0], OMP_WAIT_POLICY="ACTIVE")[POLICY] == "ACTIVE"


@pytest.mark.parametrize("name", CHOICES)
def test_any_choice_of_the_user_is_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for choice in CHOICES:
        monkeypatch.delenv(choice, raising=False)
    monkeypatch.setenv(name, "1")
    wait_passively()
    assert [choice for choice in CHOICES if choice in os.environ] == [name]


PAGE_FAULTS = """
import resource, sys
from models.process import keep_freed_memory
if "keep" in sys.argv:
    keep_freed_memory()
import torch
for _ in range(5):
    torch.ones(10_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(10_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of the C library of Linux")
def test_memory_that_is_kept_needs_fewer_new_pages() -> None:
    def faults(*arguments: str, **chosen: str) -> int:
        kept = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
        command = [sys.executable, "-c", PAGE_FAULTS, *arguments]
        done = subprocess.run(
            command, env={**kept, **chosen}, cwd=ROOT, capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    given_back = faults()
    if given_back < 100:
        pytest.skip("this C library keeps freed memory by itself")
    assert faults("keep") < given_back / 2
    assert faults("keep", MALLOC_ARENA_MAX="8") > given_back / 2  # the user has chosen
