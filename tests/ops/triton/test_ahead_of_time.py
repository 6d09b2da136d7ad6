"""Kernels compile for cards that are not there: nothing spills, and no product is rounded."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.ops.triton.processes import run

TARGETS = ("sm_80", "sm_90", "gfx942")
MOST_SHARED = 48 * 1024  # bytes that every card has for a program
# Registers of a thread, by the number of states. (NVIDIA's cards have 255: with 128 states it is
# spilling alone that could fail there.)
CEILINGS = {16: 128, 32: 240, 64: 240, 128: 320}


def compiled(target: str, which: str) -> list[dict[str, Any]]:
    """What kernels take, none of which may spill."""
    done = run("tests.ops.triton.ahead_of_time", target, which)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for kernel in found:
        assert kernel["spilled"] == 0, kernel
        assert not kernel["tf32"], kernel
        assert kernel["shared"] <= MOST_SHARED, kernel
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("which", "count"), [("log-z", 8 * 3), ("log-z-of-segments", 3)])
def test_kernels_of_log_z(target: str, which: str, count: int):
    found = compiled(target, which)
    assert len(found) == count
    for kernel in found:
        num_states = int(re.search(r'"K": (\d+)', kernel["kernel"])[1])
        assert kernel["registers"] <= CEILINGS[num_states], kernel


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel(target: str):
    assert len(compiled(target, "all")) >= 8 * 45
