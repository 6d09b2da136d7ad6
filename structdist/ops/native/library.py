"""The compiled library: found, checked and called.

It is plain C++ behind C names, in wheels or built at install where there is a compiler, and depends
neither on the version of torch nor on that of Python. A kernel takes pointers to structs, each with
its twin in csrc/arguments.h.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Callable, Sequence
from ctypes import byref
from pathlib import Path

import torch
from torch import Tensor

from structdist.ops.chain import Chain
from structdist.ops.edges import edge_strides

VERSION = 7  # of the interface, as kVersion in csrc/arguments.h
FILE_NAME = "_kernels" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
REBUILD = "build it again with `pip install --editable .` (or `pip install .`)"


def _struct(name: str, **fields: type) -> type[ctypes.Structure]:
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


INT, POINTER = ctypes.c_int64, ctypes.c_void_p

ChainArguments = _struct(
    "ChainArguments",
    num_chains=INT,
    num_steps=INT,
    num_states=INT,
    emissions=POINTER,
    transitions=POINTER,
    lengths=POINTER,
    chain_stride=INT,
    step_stride=INT,
    num_threads=INT,
)
StateArguments = _struct("StateArguments", memory=POINTER, log_alpha=POINTER)
FilterGradArguments = _struct(
    "FilterGradArguments",
    upstream=POINTER,
    grad_log_z=POINTER,
    grad_emissions=POINTER,
    grad_transitions=POINTER,
)
EdgeMarginalArguments = _struct("EdgeMarginalArguments", nodes=POINTER, edges=POINTER)
ExpectationArguments = _struct(
    "ExpectationArguments",
    node_values=POINTER,
    edge_values=POINTER,
    p_mean=POINTER,
    ratio=POINTER,
    mean=POINTER,
    value=POINTER,
)
ExpectGradArguments = _struct(
    "ExpectGradArguments",
    grad_value=POINTER,
    grad_emissions=POINTER,
    grad_nodes=POINTER,
    grad_transitions=POINTER,
    grad_edge_values=POINTER,
)
DrawArguments = _struct(
    "DrawArguments",
    num_samples=INT,
    noise=POINTER,
    prefix=POINTER,
    temperature=POINTER,
    sample_stride=INT,
    chain_stride=INT,
    soft=POINTER,
    path=POINTER,
)
SoftGradArguments = _struct(
    "SoftGradArguments", grad=POINTER, grad_prefix=POINTER, grad_transitions=POINTER
)
PathArguments = _struct(
    "PathArguments",
    num_samples=INT,
    paths=POINTER,
    scores=POINTER,
    grad=POINTER,
    grad_emissions=POINTER,
    grad_transitions=POINTER,
)
BestArguments = _struct(
    "BestArguments", path=POINTER, score=POINTER, prefix=POINTER, came_from=POINTER
)
PrefixGradArguments = _struct(
    "PrefixGradArguments", came_from=POINTER, grad=POINTER, grad_transitions=POINTER
)
LAYOUT = [
    VERSION,
    *map(
        ctypes.sizeof,
        (
            ChainArguments,
            StateArguments,
            FilterGradArguments,
            EdgeMarginalArguments,
            ExpectationArguments,
            ExpectGradArguments,
            DrawArguments,
            SoftGradArguments,
            PathArguments,
            BestArguments,
            PrefixGradArguments,
        ),
    ),
]


def load(folder: Path) -> tuple[ctypes.CDLL | None, str | None]:
    """The library in a folder, or None and why; one that is there but unfit is warned about."""
    file = folder / FILE_NAME
    if not file.exists():
        return None, f"it was not built: {_why_not_built(folder)}"
    try:
        library = ctypes.CDLL(str(file))
        unfit, supported = _misfit(library), library.supported()
    except (OSError, AttributeError) as error:
        unfit = f"{error}"
    if unfit is None:
        return (library, None) if supported else (None, "this processor lacks AVX2")
    reason = f"{file.name} is of another version or broken ({unfit}): {REBUILD}"
    warnings.warn(f"structdist runs without its compiled kernels: {reason}", stacklevel=2)
    return None, reason


def _why_not_built(folder: Path) -> str:
    """What the install left behind, if it tried."""
    note = folder / "not_built.txt"
    if note.exists():
        return note.read_text(encoding="utf-8").strip()
    return "this is the wheel without compiled kernels, or a checkout that was not installed"


def _misfit(library: ctypes.CDLL) -> str | None:
    """What is wrong with the layout of a library's arguments, if something is."""
    numbers = (INT * len(LAYOUT))()
    library.structdist_layout.restype = INT
    count = library.structdist_layout(numbers, INT(len(numbers)))
    if count != len(LAYOUT) or list(numbers) != LAYOUT:
        return f"its layout is {list(numbers)[:count]}, expected {LAYOUT}"
    return None


library, unavailable = load(Path(__file__).parent)

SUFFIX = {torch.float32: "float", torch.float64: "double"}
ARGUMENT_TYPES = {  # of kernels that take numbers and addresses; others take structs
    "all_below_inf": (POINTER, INT),
    "round_finite": (POINTER, POINTER, INT),
    "gumbel_noise": (INT, POINTER, INT, INT),
}


class _Kernels(dict[tuple[str, torch.dtype], Callable[..., int]]):
    """Kernels by name, for float32 or float64: looked up when they are first asked for."""

    def __missing__(self, key: tuple[str, torch.dtype]) -> Callable[..., int]:
        name, dtype = key
        kernel: Callable[..., int] = getattr(library, f"{name}_{SUFFIX[dtype]}")
        kernel.restype, kernel.argtypes = INT, ARGUMENT_TYPES.get(name)  # type: ignore[attr-defined]
        return self.setdefault(key, kernel)


kernels = _Kernels()


def call(name: str, chain: Chain, *arguments: ctypes.Structure) -> int:
    """Run a kernel on contiguous tensors, which the caller keeps alive."""
    emissions, transitions, lengths = chain
    num_chains, num_steps, num_states = emissions.shape
    if num_chains == 0:
        return 0
    problem = ChainArguments(
        num_chains,
        num_steps,
        num_states,
        emissions.data_ptr(),
        transitions.data_ptr(),
        lengths.data_ptr(),
        *edge_strides(transitions, num_steps),
        torch.get_num_threads(),
    )
    return kernels[name, emissions.dtype](byref(problem), *map(byref, arguments))


def pointers(*tensors: Tensor | None) -> list[int | None]:
    """Addresses of contiguous tensors."""
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


class Temperatures:
    """Where a kernel finds the temperature of each draw [S, N]; keep it as long as that runs."""

    numbers: Tensor | ctypes.c_double
    place: tuple[int, ...]  # an address, and strides from sample to sample and chain to chain

    def __init__(self, temperature: float | Tensor, shape: Sequence[int]) -> None:
        if isinstance(temperature, Tensor):
            self.numbers = temperature.to("cpu", torch.float64).expand(shape)
            self.place = self.numbers.data_ptr(), *self.numbers.stride()
        else:
            self.numbers = ctypes.c_double(temperature)
            self.place = ctypes.addressof(self.numbers), 0, 0


# For tensors on the CPU; each has a plain twin in ops/finite.py ------------------------------


def can_look_at(x: Tensor) -> bool:
    """Can the library read the numbers of a contiguous tensor?"""
    return library is not None and x.is_cpu and x.dtype in SUFFIX


def all_below_inf(x: Tensor) -> bool:
    """Are all numbers of a contiguous tensor below +inf, and none NaN?"""
    return bool(kernels["all_below_inf", x.dtype](x.data_ptr(), x.numel()))


def round_finite(doubles: int, out: Tensor) -> None:
    """Round float64 numbers at an address into a tensor, finite where they were."""
    kernels["round_finite", out.dtype](doubles, out.data_ptr(), out.numel())


def gumbel_noise_of(seed: int, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Standard Gumbel noise that a seed stands for."""
    out = torch.empty(tuple(shape), dtype=dtype, device="cpu")
    kernels["gumbel_noise", dtype](seed, out.data_ptr(), out.numel(), torch.get_num_threads())
    return out
