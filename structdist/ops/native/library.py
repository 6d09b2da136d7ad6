"""The compiled library: found, checked and called.

It is plain C++ behind C names, built at install where there is a compiler, and does not depend on
the version of torch. A kernel takes pointers to structs, each with its twin in csrc/arguments.h.
"""

from __future__ import annotations

import ctypes
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import torch
from torch import Tensor

from structdist.ops.chain import Chain
from structdist.ops.edges import EdgeForm

VERSION = 2  # of the interface, as kVersion in csrc/arguments.h
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
StateArguments = _struct(
    "StateArguments", log_alpha=POINTER, weights=POINTER, incoming=POINTER, log_z=POINTER
)
FilterGradArguments = _struct(
    "FilterGradArguments",
    upstream=POINTER,
    grad_log_z=POINTER,
    grad_emissions=POINTER,
    after=POINTER,
    grad_transitions=POINTER,
)
ExpectationArguments = _struct(
    "ExpectationArguments", node_values=POINTER, edge_values=POINTER, mean=POINTER, value=POINTER
)
ExpectGradArguments = _struct(
    "ExpectGradArguments",
    grad_value=POINTER,
    grad_emissions=POINTER,
    grad_nodes=POINTER,
    p_mean=POINTER,
    u=POINTER,
    m=POINTER,
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
            ExpectationArguments,
            ExpectGradArguments,
            DrawArguments,
            SoftGradArguments,
            BestArguments,
            PrefixGradArguments,
        ),
    ),
]


def load(folder: Path) -> tuple[ctypes.CDLL | None, str | None]:
    """The library in a folder, or None and why; one that is there but unfit is warned about."""
    files = [folder / f"_kernels{suffix}" for suffix in EXTENSION_SUFFIXES]
    file = next((file for file in files if file.exists()), None)
    if file is None:
        return None, "it was not built: at install there was no C++ compiler"
    try:
        library = ctypes.CDLL(str(file))
        unfit = _misfit(library)
    except (OSError, AttributeError) as error:
        unfit = f"{error}"
    if unfit is None:
        return (library, None) if library.supported() else (None, "this processor lacks AVX2")
    reason = f"{file.name} is of another version or broken ({unfit}): {REBUILD}"
    warnings.warn(f"structdist runs without its compiled kernels: {reason}", stacklevel=2)
    return None, reason


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


def call(name: str, chain: Chain, *arguments: ctypes.Structure) -> None:
    """Run a kernel on contiguous tensors, which the caller keeps alive."""
    emissions, transitions, lengths = chain
    num_chains, num_steps, num_states = emissions.shape
    if num_chains == 0:
        return
    matrix = num_states * num_states
    strides = {
        EdgeForm.SHARED: (0, 0),
        EdgeForm.PER_CHAIN: (matrix, 0),
        EdgeForm.PER_STEP: ((num_steps - 1) * matrix, matrix),
    }
    problem = ChainArguments(
        *emissions.shape,
        *pointers(emissions, transitions, lengths),
        *strides[chain.form],
        torch.get_num_threads(),
    )
    function = getattr(library, f"{name}_{SUFFIX[emissions.dtype]}")
    function(ctypes.byref(problem), *map(ctypes.byref, arguments))


def pointers(*tensors: Tensor | None) -> list[int | None]:
    """Addresses. A kernel reads and writes contiguous memory only."""
    for tensor in tensors:
        assert tensor is None or tensor.is_contiguous()
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]
