"""Gradients of transitions that vary with time are not built unless somebody asks for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from structdist.ops.native import library

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads peak memory from /proc")

SIZE = (2, 400, 128)  # B, T, K
EDGES = 2 * 399 * 128**2 * 4 / 2**20  # a [B, T-1, K, K] tensor: 50 MB

PROGRAM = """
import sys, torch
from structdist import LinearChainCRF

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

@torch.no_grad()
def without_gradient(name, *scores):
    return getattr(LinearChainCRF(*scores), name)

QUESTIONS = {
    "marginals": lambda *scores: without_gradient("marginals", *scores),
    "log_partition": lambda *scores: LinearChainCRF(*scores).log_partition.sum().backward(),
    "edge_marginals": lambda *scores: without_gradient("edge_marginals", *scores),
}

torch.set_num_threads(1)
batch, steps, states = map(int, sys.argv[1:4])
emissions = torch.randn(batch, steps, states, requires_grad=True)
transitions = torch.randn(batch, steps - 1, states, states)
for name in sys.argv[4:]:
    QUESTIONS[name](emissions[:, :2], transitions[:, :1])  # code and buffers once
for name in sys.argv[4:]:
    before = peak()
    QUESTIONS[name](emissions, transitions)
    print(name, peak() - before, sep=":")
"""


def extra_megabytes(backend: str, *questions: str) -> dict[str, float]:
    """What each question takes beyond those before it, in a process of their own."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, SIZE), *questions],
        capture_output=True,
        text=True,
        check=True,
        env={"STRUCTDIST_BACKEND": backend, "PATH": ""},
    )
    lines = [line.split(":") for line in result.stdout.splitlines()]
    return {name: float(extra) for name, extra in lines}


@pytest.mark.skipif(library.unavailable is not None, reason=str(library.unavailable))
def test_compiled_kernels_build_no_edges_that_nobody_asked_for():
    extra = extra_megabytes("native", "marginals", "log_partition", "edge_marginals")
    assert extra["marginals"] < EDGES / 4
    assert extra["log_partition"] < EDGES / 4
    assert extra["edge_marginals"] > EDGES / 2  # what is asked for is seen
