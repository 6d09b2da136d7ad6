"""How torch's own threads wait for work; chosen before torch is imported, so without importing it.

Between two pieces of work, the threads of OpenMP spin for some milliseconds in the hope of more. On
a machine that has other work, they take the cores that this work, or our own, could use: a step of
training can take many times as long. Threads that sleep cost microseconds to wake up.
"""

from __future__ import annotations

import os

POLICY = "OMP_WAIT_POLICY"  # of the standard: obeyed by libgomp, which torch brings, and libiomp
CHOICES = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # by any of these a user says how to wait


def wait_passively() -> None:
    """Let the threads sleep while they wait, also in processes started from here.

    A user who has set one of `CHOICES` has chosen otherwise. The runtime reads its environment when
    it is loaded: this has no effect once torch is imported.
    """
    if not any(name in os.environ for name in CHOICES):
        os.environ[POLICY] = "PASSIVE"
