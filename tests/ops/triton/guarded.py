"""A pytest plugin: every tensor that a Triton kernel is given lies between guard zones.

A kernel that reads what is not its own finds NaN (or an impossible integer) there, and one that
writes there is found out afterwards. The interpreter would let both pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from structdist.ops.triton import launching

ZONE = 256  # numbers on either side
IMPOSSIBLE = -(2**30)


class Guarded:
    """A tensor's copy between two zones."""

    def __init__(self, original: Tensor) -> None:
        self.original, count = original, original.numel()
        self.memory = original.new_full(
            (count + 2 * ZONE,), torch.nan if original.is_floating_point() else IMPOSSIBLE
        )
        self.copy = self.memory[ZONE : ZONE + count].view(original.shape)
        self.copy.copy_(original.detach())

    def put_back(self) -> None:
        """The kernel's results, where it has left the zones alone."""
        for zone in (self.memory[:ZONE], self.memory[len(self.memory) - ZONE :]):
            intact = zone.isnan() if zone.is_floating_point() else zone == IMPOSSIBLE
            assert intact.all(), "a kernel wrote beyond its tensor"
        if not torch.equal(_bytes(self.original), _bytes(self.copy)):  # else it was an input
            self.original.detach().copy_(self.copy)


def _bytes(x: Tensor) -> Tensor:
    return x.detach().reshape(-1).view(torch.uint8)


class GuardedKernel:
    """A kernel that is launched on guarded copies."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*arguments: Any, **constants: Any) -> None:
            memory: dict[int, Guarded] = {}
            given = []
            for x in arguments:
                if isinstance(x, Tensor) and x.is_contiguous():
                    x = memory.setdefault(id(x), Guarded(x)).copy
                given.append(x)
            self.kernel[grid](*given, **constants)
            for guarded in memory.values():
                guarded.put_back()

        return launch


@pytest.fixture(autouse=True)
def _guard_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    found = launching._found
    monkeypatch.setattr(launching, "_found", lambda kernel: GuardedKernel(found(kernel)))
