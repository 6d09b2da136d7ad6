"""How many kernels a call launches on a GPU, counted on any device.

Every operation that torch dispatches counts as one launch, unless it only makes a view or takes
memory. That is a lower bound for a few operations, which launch more than one kernel (`logsumexp`).
To these come the kernels that structdist's Triton backend launches by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TRITON_BACKEND = "structdist.ops.triton"
ALLOCATIONS = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}


@dataclass(frozen=True)
class Launches:
    count: int
    steps: int = 0  # of time, one after the other, inside the kernels
    num_bytes: int = 0  # of the tensors that are read and written


class CountedOperations(TorchDispatchMode):
    """Counts the operations that touch a tensor of one device."""

    def __init__(self, device: torch.device, clear_memory: bool) -> None:
        """With `clear_memory` new memory is 0, where what should be written there is left out."""
        super().__init__()
        self.device = device
        self.clear_memory = clear_memory
        self.count = 0
        self.num_bytes = 0

    def __torch_dispatch__(
        self,
        function: Any,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = function(*args, **(kwargs or {}))
        inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        outputs = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        if function.overloadpacket.__name__ in ALLOCATIONS:
            if self.clear_memory:
                outputs[0].zero_()
        elif self._is_here(inputs + outputs) and not _is_view(function, inputs, outputs):
            self.count += 1
            self.num_bytes += sum(map(_bytes_of, inputs + outputs))
        return result

    def _is_here(self, tensors: list[Tensor]) -> bool:
        return any(x.device.type == self.device.type for x in tensors)


def _is_view(function: Any, inputs: list[Tensor], outputs: list[Tensor]) -> bool:
    """Does all that comes out share the memory of what went in, and was nothing written?"""
    if function._schema.is_mutable or not outputs:
        return False
    memory = {x.untyped_storage()._cdata for x in inputs}
    return all(x.untyped_storage()._cdata in memory for x in outputs)


def _bytes_of(x: Tensor) -> int:
    """Of an expanded tensor, those that are really there."""
    return min(x.numel() * x.element_size(), x.untyped_storage().nbytes())


def count_launches(
    function: Callable[[], object], device: torch.device, dry: bool = False
) -> Launches:
    """What a call launches on a device; a dry run leaves Triton's kernels out, but counts them."""
    with (
        recorded_triton_launches(run=not dry) as kernels,
        CountedOperations(device, clear_memory=dry) as operations,
    ):
        function()
    return Launches(
        operations.count + len(kernels),
        sum(kernel.steps for kernel in kernels),
        operations.num_bytes + sum(kernel.num_bytes for kernel in kernels),
    )


@contextmanager
def recorded_triton_launches(run: bool) -> Iterator[list[Any]]:
    """A list of what the Triton backend launches; it stays empty where there is none."""
    try:
        backend = import_module(TRITON_BACKEND)
    except ImportError:
        yield []
        return
    with backend.recorded_launches(run=run) as kernels:
        yield kernels
