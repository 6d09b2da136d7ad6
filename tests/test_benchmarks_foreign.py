"""Contenders with arrays of their own: checked like the others, timed without conversions."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from benchmarks.checks import check
from benchmarks.contenders import CONTENDERS, Contender, forward, forward_backward
from benchmarks.foreign import ForeignWork
from benchmarks.jax_chain import SINGLE_THREADED, thread_settings
from benchmarks.operations import OPERATIONS
from benchmarks.ours import REFERENCE
from benchmarks.problem import Size
from benchmarks.samplers import Arena, run
from benchmarks.timing import Limits, Stopwatch, race

ROOT = Path(__file__).parent.parent
CPU = torch.device("cpu")
SMALL = Size(batch=3, length=6, states=3)
LOG_Z = OPERATIONS["log-z"]
(JAX,) = (contender for contender in CONTENDERS if contender.name == "jax")
needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")

# A library whose arrays are inputs in a list.
BOXED = ForeignWork(
    arrays=lambda inputs: [inputs],
    forward=lambda arrays: [forward(REFERENCE["log-z"], arrays[0])],
    forward_backward=lambda arrays: tuple(
        [x] for x in forward_backward(REFERENCE["log-z"], arrays[0])
    ),
    tensor=lambda array: array[0],
)


def test_a_right_one_takes_part() -> None:
    arena = Arena(CPU, Limits(budget=5.0, fewest=1, usual=1, most=2, shortest=0.0))
    _, row = run([SMALL], [LOG_Z], arena, [Contender("boxed", {"log-z": BOXED})])
    assert row["status"] == "ok", row["detail"]
    assert row["forward"]["median"] > 0
    assert row["forward_backward"]["median"] > 0
    assert row["forward_bytes"] is row["forward_backward_bytes"] is None


def test_wrong_ones_are_caught() -> None:
    wrong = {
        "value off": replace(BOXED, forward=lambda arrays: [BOXED.forward(arrays)[0] + 1e-3]),
        "gradient by emissions": replace(
            BOXED,
            forward_backward=lambda arrays: [[2 * x[0]] for x in BOXED.forward_backward(arrays)],
        ),
    }
    for what, work in wrong.items():
        failure = check(Contender("wrong", {"log-z": work}), LOG_Z, SMALL, CPU).failure
        assert failure is not None
        assert what in failure


def test_each_runs_on_what_was_converted_for_it() -> None:
    calls: list[object] = []
    runners = {"plain": calls.append, "foreign": calls.append}
    limits = Limits(fewest=1, usual=1, most=1)
    race(runners, lambda count: count, Stopwatch(CPU), limits, {"foreign": lambda x: [x]})
    assert calls == [0, [0], 1, [1]]


def test_a_device_that_it_does_not_know_is_a_reason_to_sit_out() -> None:
    contender = Contender("here", REFERENCE, devices=("cpu",))
    assert contender.cannot_run(SMALL, CPU) is None
    assert contender.cannot_run(SMALL, torch.device("cuda")) == "does not run on cuda here"


def test_xla_is_told_of_the_threads() -> None:
    assert thread_settings(2, "--mine") == {"PJRT_NPROC": "2"}
    assert thread_settings(1, "") == {"PJRT_NPROC": "1", "XLA_FLAGS": SINGLE_THREADED}
    assert thread_settings(1, "--mine")["XLA_FLAGS"] == f"--mine {SINGLE_THREADED}"


def test_without_jax_the_reason_is_told() -> None:
    reason = JAX.cannot_run(SMALL, CPU)
    assert reason == (None if find_spec("jax") else "jax is not installed")


@needs_jax
@pytest.mark.parametrize("size", [SMALL, Size(2, 1, 4), Size(1, 2, 1), Size(2, 300, 5)], ids=str)
def test_jax_is_right(size: Size) -> None:
    assert check(JAX, LOG_Z, size, CPU).failure is None


ONE_THREAD = """
import os, sys
import torch
from benchmarks.checks import check
from benchmarks.contenders import CONTENDERS
from benchmarks.operations import OPERATIONS
from benchmarks.problem import Size

assert "jax" not in sys.modules  # it is imported after the threads are known
torch.set_num_threads(1)
verdict = check(CONTENDERS[-1], OPERATIONS["log-z"], Size(2, 3, 4), torch.device("cpu"))
print(CONTENDERS[-1].name, verdict.failure, os.environ["PJRT_NPROC"], os.environ["XLA_FLAGS"])
"""


@needs_jax
def test_jax_starts_with_as_many_threads_as_torch() -> None:
    command = [sys.executable, "-c", ONE_THREAD]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("jax None 1 "), done.stderr
    assert done.stdout.endswith(f"{SINGLE_THREADED}\n")
