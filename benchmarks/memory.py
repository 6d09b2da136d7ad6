"""Peak memory of one call, beyond what was allocated before it."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch.autograd.profiler import profile

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # or the profiler reports its start and stop


def peak_bytes(function: Callable[[], object], device: torch.device) -> int:
    """The most that was allocated at one time inside the call.

    On CUDA the caching allocator keeps this number. On CPU it is the running sum of every
    allocation and release that torch's CPU allocator reports to the profiler, which sees tensors
    of Python and C++ operators alike, to the byte. It does not see what C++ code takes from malloc
    by itself, nor BLAS work space; the resident set would, but only in whole pages, after the
    allocator's re-use, and on top of a process of some hundred MB.
    The call is made once before, so that what it sets up once and for all does not count.
    """
    function()
    gc.collect()
    return _cuda_peak(function, device) if device.type == "cuda" else _cpu_peak(function)


def _cuda_peak(function: Callable[[], object], device: torch.device) -> int:
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    function()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def _cpu_peak(function: Callable[[], object]) -> int:
    with profile(profile_memory=True) as profiler:
        function()
    events = [e for e in profiler.kineto_results.events() if e.name() == "[memory]"]
    current = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        current += event.nbytes()
        peak = max(peak, current)
    return peak


def available_bytes(device: torch.device) -> int | None:
    """What could still be allocated, where the system tells."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024
