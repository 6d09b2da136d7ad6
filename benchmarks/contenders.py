"""Who takes part: a contender offers some operations as functions of the scores of its structure.

Those of linear chains are emissions and transitions; for semi-Markov chains see `segment_works`.
Every function builds its objects anew, as a training step does, so nothing cached is ever timed.
It returns log Z and entropy as `[B]`, marginals and relaxed or one-hot samples as `[B, T, K]`,
paths as integers `[B, T]`. A library with arrays of its own offers `ForeignWork` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from benchmarks import jax_chain, ours, rivals, segment_works
from benchmarks.foreign import ForeignWork
from benchmarks.operations import Operation
from benchmarks.problem import Inputs, Size

Work = Callable[..., Tensor] | ForeignWork


@dataclass(frozen=True)
class Contender:
    name: str
    works: Mapping[str, Work]  # by the operation's name
    module: str = "structdist"
    shortest: int = 1  # smallest T it accepts
    bytes_needed: Callable[[Any], int] | None = None  # where it may not fit: at least so much
    devices: Sequence[str] = ("cpu", "cuda")
    at_home: Sequence[str] = ("cpu", "cuda")  # devices where it takes part without being named
    obstacle: Callable[[Size, torch.device], str | None] | None = None  # found out by trying
    gpu_backends: Sequence[
        str
    ] = ()  # of structdist, that would serve it on a GPU; first choice first

    def cannot_run(self, size: Size, device: torch.device) -> str | None:
        """Why this contender has to sit out, if it has to."""
        if find_spec(self.module) is None:
            return f"{self.module} is not installed"
        if device.type not in self.devices:
            return f"does not run on {device.type} here"
        if size.length < self.shortest:
            return f"needs T of {self.shortest} or more"
        return None if self.obstacle is None else self.obstacle(size, device)


def _backend(name: str, devices: Sequence[str]) -> Contender:
    """One of structdist's backends; on the CPU only who asks for it wants to see it."""
    return Contender(
        name,
        ours.by_backend(name),
        devices=devices,
        at_home=("cuda",),
        obstacle=partial(ours.backend_obstacle, name),
        gpu_backends=(name,),
    )


CONTENDERS = (
    Contender("structdist", ours.STRUCTDIST, gpu_backends=("triton", "rescaled")),
    Contender("reference", ours.REFERENCE),
    _backend("rescaled", devices=("cpu", "cuda")),
    _backend("triton", devices=("cuda",)),
    Contender(
        "torch-struct",
        rivals.TORCH_STRUCT,
        module="torch_struct",
        shortest=2,
        bytes_needed=rivals.torch_struct_bytes,
    ),
    Contender(
        "torch-struct-genbmm",
        rivals.TORCH_STRUCT_GENBMM,
        module="torch_struct",
        shortest=2,
        devices=("cuda",),
        at_home=("cuda",),
        obstacle=rivals.genbmm_obstacle,
    ),
    Contender("pytorch-crf", rivals.PYTORCH_CRF, module="torchcrf"),
    Contender("jax", jax_chain.JAX, module="jax", devices=("cpu",)),
)


SEGMENT_CONTENDERS = (
    Contender("structdist", segment_works.STRUCTDIST, gpu_backends=("rescaled",)),
    Contender("reference", segment_works.REFERENCE),
    Contender(
        "rescaled",
        segment_works.by_backend("rescaled"),
        at_home=("cuda",),
        gpu_backends=("rescaled",),
    ),
    Contender(
        "torch-struct",
        segment_works.TORCH_STRUCT,
        module="torch_struct",
        bytes_needed=segment_works.torch_struct_bytes,
    ),
)


def at_home(*devices: str, among: Sequence[Contender] = CONTENDERS) -> list[Contender]:
    """Who takes part on some devices without being named."""
    return [c for c in among if set(devices) & set(c.at_home)]


def forward(work: Work, inputs: Inputs) -> Tensor:
    """Evaluation: no graph, unless the contender needs one for itself."""
    if isinstance(work, ForeignWork):
        return work.output(inputs)
    leaves = inputs.leaves()
    with torch.no_grad():
        return work(*leaves)


def forward_backward(work: Work, inputs: Inputs) -> tuple[Tensor, ...]:
    """Training: the gradient of a weighted sum of the output, by all scores."""
    if isinstance(work, ForeignWork):
        return work.gradients(inputs)
    leaves = inputs.leaves()
    output = work(*leaves)
    value = (output * inputs.weights_like(output)).sum()
    return torch.autograd.grad(value, leaves, materialize_grads=True)  # T = 1 has no transitions


def heaviest(operation: Operation) -> Callable[[Work, Inputs], object]:
    return forward_backward if operation.differentiable else forward


def floor_forward(inputs: Inputs) -> None:
    """T bare products of [B, K] and [K, K]: what a forward pass cannot do without."""
    _products(inputs, inputs.emissions.shape[1])


def floor_forward_backward(inputs: Inputs) -> None:
    """3T products: forward, and two in the backward pass for its two factors."""
    _products(inputs, 3 * inputs.emissions.shape[1])


def _products(inputs: Inputs, count: int) -> None:
    row, matrix = inputs.emissions[:, 0].contiguous(), inputs.transitions
    for _ in range(count):
        torch.mm(row, matrix)
