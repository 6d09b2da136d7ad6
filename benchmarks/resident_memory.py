"""`python -m benchmarks.resident_memory B T L K THREADS`: how much a process grows by log Z.

Prints the bytes by which the peak of its resident set rises in both passes of a semi-Markov chain,
beyond what the arguments take. Unlike the profiler this sees what compiled code takes by itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from structdist import SemiMarkovCRF


def peak_resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def extra_bytes(batch: int, length: int, longest: int, states: int) -> int:
    transitions = torch.randn(states, states, requires_grad=True)
    durations = torch.randn(longest, states, requires_grad=True)

    def both_passes(num_steps: int) -> int:
        emissions = torch.randn(batch, num_steps, states, requires_grad=True)
        before = peak_resident_bytes()
        SemiMarkovCRF(emissions, transitions, durations).log_partition.sum().backward()
        return peak_resident_bytes() - before

    both_passes(2)  # what is set up once and for all does not count
    return both_passes(length)


if __name__ == "__main__":
    *numbers, threads = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    print(extra_bytes(*numbers))
