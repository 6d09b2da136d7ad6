"""A pytest plugin: the conformance suite, whose tensors are on the CPU, with kernels on a GPU.

The Triton backend is replaced by one that moves what it is given to the GPU, and what it finds
back. It is in use where `STRUCTDIST_TEST_DEVICE=cuda` is set; `make test-gpu` does so.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from structdist.ops import registry
from structdist.ops.backend import AnyBackend, Backend


def moved(x: Any, device: str) -> Any:
    """Tensors of any nesting, on another device."""
    if isinstance(x, Tensor):
        return x.to(device)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(moved(y, device) for y in x))
    return type(x)(moved(y, device) for y in x) if isinstance(x, tuple | list) else x


def on_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        return moved(function(*moved(arguments, "cuda")), "cpu")

    return run


def backend_on_gpu(triton: AnyBackend) -> AnyBackend:
    names = [name for name in vars(Backend) if name.islower() and not name.startswith("_")]
    functions = {name: on_gpu(getattr(triton, name)) for name in names}
    return SimpleNamespace(NAME=triton.NAME, **functions)  # type: ignore[return-value]


def pytest_configure() -> None:
    assert torch.cuda.is_available(), "there is no GPU here"
    for problem, structure in list(registry._structures.items()):
        triton = next(backend for backend in structure.backends if backend.NAME == "triton")
        backend = backend_on_gpu(triton)
        registry.register(problem, structure.name, structure.reference, backend)
