"""Work of libraries that have arrays of their own, and know nothing of tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from benchmarks.problem import Inputs


@dataclass(frozen=True)
class ForeignWork:
    """An operation on foreign arrays. What goes from tensors to arrays and back is never timed.

    Both functions return when their work is done. Their memory is out of torch's sight.
    """

    arrays: Callable[[Inputs], Any]
    forward: Callable[[Any], Any]
    forward_backward: Callable[[Any], tuple[Any, ...]]  # by emissions and by transitions
    tensor: Callable[[Any], Tensor]

    def output(self, inputs: Inputs) -> Tensor:
        return self.tensor(self.forward(self.arrays(inputs)))

    def gradients(self, inputs: Inputs) -> tuple[Tensor, ...]:
        return tuple(map(self.tensor, self.forward_backward(self.arrays(inputs))))
