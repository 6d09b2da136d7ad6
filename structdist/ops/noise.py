"""Random numbers for draws, from torch's generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from structdist.ops.native import operators
from structdist.ops.native.library import gumbel_noise_of, unavailable
from structdist.ops.transforms import transforming


def gumbel_noise(
    shape: Sequence[int],
    dtype: torch.dtype,
    device: torch.device,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Independent standard Gumbel noise, resolved down to probabilities of 2^-31 (2^-63).

    On the CPU it is made by the compiled library from a seed that torch draws; elsewhere from
    random integers of torch, since `torch.rand` has too few digits near 0, where the noise is
    largest and decides which rare state is drawn.
    """
    source: dict[str, Any] = {} if generator is None else {"generator": generator}
    if device.type != "cpu" or unavailable is not None or transforming():
        return _from_integers(shape, dtype, device, source)
    seed = torch.randint(
        torch.iinfo(torch.int64).max, (), dtype=torch.int64, device=device, **source
    )
    if torch.compiler.is_compiling():
        return operators.gumbel_noise(seed, list(shape), dtype)
    return gumbel_noise_of(int(seed), shape, dtype)


def _from_integers(
    shape: Sequence[int], dtype: torch.dtype, device: torch.device, source: dict[str, Any]
) -> Tensor:
    kind = {torch.float32: torch.int32, torch.float64: torch.int64}[dtype]
    most = torch.iinfo(kind).max
    integers = torch.randint(most, tuple(shape), dtype=kind, device=device, **source)
    uniform = integers.to(dtype).add_(0.5).mul_((1 - torch.finfo(dtype).eps) / most)
    return uniform.neg_().log1p_().neg_().log_().neg_()
