"""Peak memory of both passes, each in a process of its own: O(B T K + K^2), never O(B T K^2)."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads peak memory from /proc")

PROGRAM = """
import sys, torch
from structdist import LinearChainCRF

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

def run(emissions, transitions):
    dist = LinearChainCRF(emissions, transitions)
    {"log_partition": lambda: dist.log_partition.sum().backward(),
     "mean": lambda: dist.mean.pow(2).sum().backward(),
     "entropy": lambda: dist.entropy().sum().backward(),
     "rsample": lambda: dist.rsample(straight_through=True).pow(2).sum().backward(),
     "sample_paths": lambda: dist.sample_paths()}[sys.argv[1]]()

torch.set_num_threads(1)
batch, steps, states = map(int, sys.argv[2:])
transitions = torch.randn(states, states, requires_grad=True)
run(torch.randn(batch, 2, states, requires_grad=True), transitions)  # code and buffers once
emissions = torch.randn(batch, steps, states, requires_grad=True)
before = peak()
run(emissions, transitions)
print(peak() - before)
"""


def extra_megabytes(quantity: str, *size: int, backend: str) -> float:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, quantity, *map(str, size)],
        capture_output=True,
        text=True,
        check=True,
        env={"STRUCTDIST_BACKEND": backend, "PATH": ""},
    )
    return float(result.stdout)


@pytest.mark.parametrize("quantity", ["log_partition", "mean", "entropy", "rsample"])
def test_memory_does_not_grow_with_the_square_of_states(quantity, kernels):
    edges = 4 * 400 * 256**2 * 4 / 2**20  # a [B, T, K, K] tensor: 400 MB
    assert extra_megabytes(quantity, 4, 400, 256, backend=kernels) < edges / 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "quantity", ["log_partition", "mean", "entropy", "rsample", "sample_paths"]
)
def test_long_chains_of_many_states_fit_in_a_gigabyte(quantity, kernels):
    assert extra_megabytes(quantity, 8, 2000, 512, backend=kernels) < 1024
