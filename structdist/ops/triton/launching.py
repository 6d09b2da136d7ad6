"""Whether Triton can be used here, and the one door through which its kernels are launched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import torch
from torch import Tensor

OLDEST_TRITON = (3, 0)
OLDEST_CUDA_CARD = (7, 0)  # compute capability
MOST_STATES = 1024  # of one program
MOST_BYTES_OF_EDGES = 2**16  # that one program keeps in registers: a quarter of a GPU core's


TYPES = {
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int32: "i32",
    torch.int64: "i64",
}


class Launch(NamedTuple):
    """One launch of a kernel, as `recorded_launches` tells it."""

    kernel: str
    programs: int
    steps: int  # time steps that follow one another in it, 0 if none do
    num_bytes: int  # of the tensors it is given, to read or to write
    signature: tuple[str, ...]  # the types of its arguments, as Triton names them
    constants: dict[str, Any]  # what it is compiled for, its warps among them


class _Recorder(NamedTuple):
    launches: list[Launch]
    run: bool


_recorders: list[_Recorder] = []


@contextmanager
def recorded_launches(run: bool = True) -> Iterator[list[Launch]]:
    """What is launched within the block, in order.

    Without `run` nothing is executed, and results are whatever memory held: launches can be
    counted on any tensors, without a GPU.
    """
    recorder = _Recorder([], run)
    _recorders.append(recorder)
    try:
        yield recorder.launches
    finally:
        _recorders.remove(recorder)


def interpreted() -> bool:
    """Does Triton interpret its kernels on the CPU? (It looks when it is imported.)"""
    return os.environ.get("TRITON_INTERPRET") == "1"


def _unusable() -> str | None:
    """Why the Triton that is installed cannot be used, as far as its version tells."""
    try:
        found = version("triton")
    except PackageNotFoundError:
        return "Triton is not installed"
    if tuple(int(x) for x in found.split(".")[:2]) < OLDEST_TRITON:
        return f"Triton {found} is too old, it needs {'.'.join(map(str, OLDEST_TRITON))} or later"
    return None


UNUSABLE = _unusable()


def missing() -> str | None:
    """Why no kernel can be launched on this machine, whatever the tensors."""
    if UNUSABLE is not None or torch.compiler.is_compiling():
        return UNUSABLE
    return _broken()


@cache
def _broken() -> str | None:
    """What is wrong with an installation that must not break `import structdist`."""
    try:
        import_module("triton.language")
    except Exception as error:
        return f"Triton does not import: {error}"
    return None


def unfit_device(device: torch.device) -> str | None:
    """Why kernels cannot run on a device, if they cannot."""
    if device.type == "cpu" and (interpreted() or not all(r.run for r in _recorders)):
        return None
    if device.type != "cuda":
        return f"it serves CUDA and ROCm tensors, not {device.type}"
    if torch.version.hip is None and torch.cuda.is_available():
        capability = torch.cuda.get_device_capability(device)
        if capability < OLDEST_CUDA_CARD:
            return f"the card has compute capability {capability}, below {OLDEST_CUDA_CARD}"
    return None


class Tiles(NamedTuple):
    """How a problem is cut into programs: some chains each, and all of their states."""

    chains: int  # of one program
    rows: int  # steps of a chain that are looked at together where they do not follow one another
    num_states: int
    padded: int  # num_states, to the next power of two
    columns: int  # of a matrix of edges that are looked at together in log space

    @classmethod
    def of(cls, num_states: int) -> Tiles:
        """One chain a program, whose states fill its threads; many where they are interpreted."""
        padded = max(16, 1 << (num_states - 1).bit_length())
        if interpreted():
            return cls(16, 16, num_states, padded, 16)
        return cls(1, 1, num_states, padded, 4)

    def programs(self, num_chains: int) -> int:
        """How many have all chains."""
        return -(-num_chains // self.chains)

    @property
    def lengths(self) -> int:
        """Of segments, that are looked at together: a few numbers for each thread."""
        return 4 if interpreted() else max(4, 128 // self.padded)

    @property
    def column_blocks(self) -> int:
        return -(-self.num_states // self.columns)

    def fit_registers(self, matrices: int, dtype: torch.dtype) -> bool:
        """Can a program hold so many matrices of edges?"""
        return matrices * self.padded**2 * dtype.itemsize <= MOST_BYTES_OF_EDGES

    def warps(self, matrices: int, dtype: torch.dtype) -> int:
        """As many as leave a thread 64 registers of edges to hold, and otherwise two states.

        With 128 states these are 128: more threads spill what they need beside them.
        """
        registers = matrices * self.padded**2 * dtype.itemsize // 4
        each = 64 if self.padded < 128 else 128
        threads = registers // each if matrices else self.padded // 2
        fewest = max(1, threads // 32)
        return 1 << (fewest - 1).bit_length()  # a power of two

    @property
    def constants(self) -> dict[str, int]:
        """What kernels are compiled for."""
        return {"K": self.num_states, "KP": self.padded}


def launch(
    kernel: str,
    programs: Sequence[int],
    arguments: Sequence[Any],
    *,
    steps: int = 0,
    num_warps: int = 1,
    **constants: Any,
) -> None:
    """Run a kernel of `kernels/`, named "file.function", on a grid of programs."""
    if 0 in programs:
        return
    tensors = [x for x in arguments if isinstance(x, Tensor)]
    for recorder in _recorders:
        size = sum(x.numel() * x.itemsize for x in tensors)
        types = tuple(f"*{TYPES[x.dtype]}" if isinstance(x, Tensor) else "i32" for x in arguments)
        compiled_for = {**_options(num_warps), **constants}
        count = torch.Size(programs).numel()
        recorder.launches.append(Launch(kernel, count, steps, size, types, compiled_for))
    if all(recorder.run for recorder in _recorders):
        with _on(tensors[0].device):
            _found(kernel)[tuple(programs)](*arguments, **_options(num_warps), **constants)


def _options(num_warps: int) -> dict[str, int]:
    """NVIDIA's compiler is told to use registers rather than to spill for the sake of others."""
    if torch.version.hip is not None:
        return {"num_warps": num_warps}
    return {"num_warps": num_warps, "maxnreg": min(255, 2**16 // (32 * num_warps))}


def _on(device: torch.device) -> AbstractContextManager[object]:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


@cache
def _found(kernel: str) -> Any:
    file, function = kernel.split(".")
    return getattr(import_module(f"structdist.ops.triton.kernels.{file}"), function)
