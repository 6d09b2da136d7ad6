"""How this process treats the machine, settled before torch is imported."""

from __future__ import annotations

import ctypes
import os
import sys

POLICY = "OMP_WAIT_POLICY"  # of the standard: obeyed by libgomp, which torch brings, and libiomp
CHOICES = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # by any of these a user says how to wait
TRIM_THRESHOLD, MMAP_MAX = -1, -4  # numbers of glibc's malloc.h
NEVER = 2**31 - 1


def wait_passively() -> None:
    """Let torch's threads sleep while they wait, also in processes started from here.

    Between two pieces of work, the threads of OpenMP spin for some milliseconds in the hope of
    more. On a machine that has other work, they take the cores that this work, or our own, could
    use: a step of training can take many times as long. Threads that sleep cost microseconds to
    wake up.

    A user who has set one of `CHOICES` has chosen otherwise. The runtime reads its environment when
    it is loaded: this has no effect once torch is imported.
    """
    if not any(name in os.environ for name in CHOICES):
        os.environ[POLICY] = "PASSIVE"


def keep_freed_memory() -> None:
    """Keep large blocks that are freed for the next that are needed.

    The C library of Linux gives large blocks back to the system at once, which has to clear their
    pages when the next step of training asks for them again: a step that scores several templates
    of a sentence takes a third less time without. A user who has chosen how memory is managed, or
    another library for it, is obeyed.
    """
    chosen = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")
    if sys.platform != "linux" or any(name.startswith(chosen) for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # not every Linux has glibc
        mallopt(MMAP_MAX, 0)
        mallopt(TRIM_THRESHOLD, NEVER)
