"""What each contender launches: counted on the GPU, or without one in a dry run.

A dry run takes what would run on a GPU to where it can be counted. Contenders of torch run on meta
tensors, which have shapes and no numbers, or on the CPU, if they look at numbers. Those of
structdist run on the CPU by a backend that serves GPUs, with noise and checks of numbers by torch
too; kernels of Triton are noted down and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from unittest.mock import patch

import torch

from benchmarks.contenders import Contender, Work, forward, forward_backward
from benchmarks.foreign import ForeignWork
from benchmarks.launches import Launches, count_launches
from benchmarks.operations import Operation
from benchmarks.problem import Inputs, Size, make_inputs
from structdist.ops import noise, use_backend
from structdist.ops.native import library

CPU, META = torch.device("cpu"), torch.device("meta")
MOST_BYTES = 10**9  # that a dry run on the CPU may need

Way = tuple[str, Callable[[], AbstractContextManager[None]], torch.device]
"""How to run a contender: what that is, in which context, and on which device."""


@dataclass(frozen=True)
class Counted:
    how: str  # on which device, by which backend
    forward: Launches
    forward_backward: Launches | None = None


class NotCountedError(Exception):
    """Why the launches of a contender are not known."""


def count(contender: Contender, operation: Operation, size: Size, device: torch.device) -> Counted:
    """The launches on a GPU: of a run on it, if `device` is one, otherwise of a dry run."""
    work = contender.works[operation.name]
    if isinstance(work, ForeignWork):
        raise NotCountedError("its launches are out of torch's sight")
    dry = device.type != "cuda"
    if dry and "cpu" not in contender.devices and not contender.gpu_backends:
        raise NotCountedError("its launches can be counted on a GPU only")
    on_gpu: list[Way] = [(f"on {device.type}", nullcontext, device)]
    reasons = []
    for how, context, where in _dry_runs(contender, size) if dry else on_gpu:
        try:
            with context():
                return _count(how, work, operation, make_inputs(size, where, seed=0), dry)
        except Exception as error:  # whatever a contender raises, another way may do
            reasons.append(f"{how} it raised {type(error).__name__}: {error}".splitlines()[0])
    if dry and _is_too_large(contender, size):
        reasons.append("it is too large for a dry run on cpu")
    raise NotCountedError("; ".join(reasons))


def _count(how: str, work: Work, operation: Operation, inputs: Inputs, dry: bool) -> Counted:
    device = inputs.emissions.device
    counted = Counted(how, count_launches(lambda: forward(work, inputs), device, dry))
    if not operation.differentiable:
        return counted
    both = count_launches(lambda: forward_backward(work, inputs), device, dry)
    return Counted(how, counted.forward, both)


def _dry_runs(contender: Contender, size: Size) -> Iterator[Way]:
    """Ways to run it without a GPU, the best first."""
    for backend in contender.gpu_backends:
        yield f"by {backend}", lambda name=backend: _as_on_gpu(name), CPU
    if not contender.gpu_backends:
        yield "on meta tensors", nullcontext, META
        if not _is_too_large(contender, size):
            yield "on cpu", nullcontext, CPU


def _is_too_large(contender: Contender, size: Size) -> bool:
    return contender.bytes_needed is not None and contender.bytes_needed(size) > MOST_BYTES


@contextmanager
def _as_on_gpu(backend: str) -> Iterator[None]:
    """A backend on the CPU, without the compiled library, which does not serve GPUs."""
    absent = "launches of a GPU are counted"
    with (
        patch.object(library, "library", None),
        patch.object(library, "unavailable", absent),
        patch.object(noise, "unavailable", absent),
        use_backend(backend),
    ):
        yield
