"""Kernels compile for cards that are not there: nothing spills, and no product is rounded."""

from __future__ import annotations

import json

import pytest

from tests.ops.triton.processes import run

MOST_REGISTERS = {"sm_80": 255, "sm_90": 255, "gfx942": 512}  # that a thread can have there
MOST_SHARED = 48 * 1024  # bytes that every card has for a program


def check(target: str, which: str) -> int:
    """How many kernels were compiled, at 16, 32, 64 and 128 states in both dtypes."""
    done = run("tests.ops.triton.ahead_of_time", target, which)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for kernel in found:
        assert kernel["spilled"] == 0, kernel
        assert not kernel["tf32"], kernel
        assert kernel["registers"] <= MOST_REGISTERS[target], kernel
        assert kernel["shared"] <= MOST_SHARED, kernel
    return len(found)


@pytest.mark.parametrize("target", MOST_REGISTERS)
def test_kernels_of_log_z(target: str):
    assert check(target, "log-z") == 8 * 3


@pytest.mark.slow
@pytest.mark.parametrize("target", MOST_REGISTERS)
def test_every_kernel(target: str):
    assert check(target, "all") >= 8 * 25
