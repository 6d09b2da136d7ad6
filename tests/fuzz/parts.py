"""Arguments of distributions as vectors of scores of parts, and vectors back as gradients.

A score of a part is a sum of arguments, so that the gradient of anything by an argument is the sum
of its gradients by parts: what autograd has to do here is linear. Nothing of `structdist` is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tests.fuzz.listings import Sizes

if TYPE_CHECKING:
    from tests.structures.structure import BaseExample

LARGEST = 1e300  # scores beyond are taken for this: no sum of them overflows
EVENT_DIMS = {"emissions": 2, "durations": 2, "segments": 3, "start": 1, "end": 1}


def arguments_of(example: BaseExample, sizes: Sizes) -> dict[str, Tensor]:
    """Every score in float64, over the whole batch, and moves by step: [N, T-1, K, K]."""
    batch_shape = example.lengths.shape
    return {
        name: _over_batch(name, x.detach().double(), batch_shape, sizes)
        for name, x in example.scores.items()
    }


def _over_batch(name: str, x: Tensor, batch_shape: torch.Size, sizes: Sizes) -> Tensor:
    dims = EVENT_DIMS.get(name, 3)
    if name == "transitions" and x.dim() < len(batch_shape) + 3:
        x = x.unsqueeze(-3).expand(*x.shape[:-2], sizes.num_steps - 1, -1, -1)
    event_shape = x.shape[x.dim() - dims :]
    return x.expand(batch_shape + event_shape).reshape(batch_shape.numel(), *event_shape)


def parts_of(arguments: dict[str, Tensor], sizes: Sizes) -> Tensor:
    """[N, F]: scores of steps, moves, segments, first and last labels, and a zero."""
    bounded = {name: _bounded(x) for name, x in arguments.items()}
    return _assembled(bounded, sizes)


def _bounded(x: Tensor) -> Tensor:
    return torch.where(x.isinf(), x, x.clamp(-LARGEST, LARGEST))


def _assembled(arguments: dict[str, Tensor], sizes: Sizes) -> Tensor:
    emissions = arguments["emissions"]
    zeros = emissions.new_zeros(len(emissions), 1, sizes.num_labels)
    kinds = [
        emissions,
        arguments["transitions"],
        _assembled_segments(arguments, sizes),
        arguments.get("start", zeros),
        arguments.get("end", zeros),
        zeros[..., :1],
    ]
    return torch.cat([x.reshape(len(emissions), -1) for x in kinds], 1)


def _assembled_segments(arguments: dict[str, Tensor], sizes: Sizes) -> Tensor:
    """[N, T, L, K]: durations and segments together."""
    emissions = arguments["emissions"]
    total = emissions.new_zeros(len(emissions), *_segment_shape(sizes))
    if "segments" in arguments:
        total = total + arguments["segments"]
    if "durations" in arguments:
        total = total + arguments["durations"].unsqueeze(1)
    return total


def _segment_shape(sizes: Sizes) -> tuple[int, int, int]:
    return sizes.num_steps, sizes.longest, sizes.num_labels


def by_kind(of_parts: Tensor, sizes: Sizes) -> dict[str, Tensor]:
    """Numbers of parts [N, F] in the shapes of their kinds."""
    steps, labels = sizes.num_steps, sizes.num_labels
    nodes, edges, segments, *_ = of_parts.split(sizes.of_kinds, 1)
    return {
        "steps": nodes.unflatten(1, (steps, labels)),
        "moves": edges.unflatten(1, (steps - 1, labels, labels)),
        "segments": segments.unflatten(1, _segment_shape(sizes)),
    }


def pulled_back(weights: Tensor, example: BaseExample, sizes: Sizes) -> dict[str, Tensor]:
    """Gradients by parts [N, F] as gradients by each score of an example, in its shape."""
    leaves = {
        name: torch.zeros(x.shape, dtype=torch.float64, requires_grad=True)
        for name, x in example.scores.items()
    }
    batch_shape = example.lengths.shape
    whole = {name: _over_batch(name, x, batch_shape, sizes) for name, x in leaves.items()}
    parts = _assembled(whole, sizes)
    found = torch.autograd.grad(parts, list(leaves.values()), weights, materialize_grads=True)
    return dict(zip(leaves, found, strict=True))


def errors_of(arguments: dict[str, Tensor], sizes: Sizes, example: BaseExample) -> Tensor:
    """[N, F]: how far sums of arguments may be off that are made in the dtype of the scores.

    These are emissions with start and end, durations with segments, and, where all segments are
    single steps, emissions with those. Beyond the largest number of the dtype they are this number.
    """
    dtype = torch.float32
    for x in example.scores.values():
        dtype = torch.promote_types(dtype, x.dtype)
    given = {
        name: torch.where(x.isfinite(), x.abs().clamp(max=LARGEST), 0.0)
        for name, x in arguments.items()
    }
    errors = {name: torch.zeros_like(x) for name, x in arguments.items()}
    added, lengths = torch.zeros_like(given["emissions"]), example.lengths.flatten()
    if "start" in given:
        added[:, 0] += given["start"]
    if "end" in given:
        added[torch.arange(len(lengths)), (lengths - 1).clamp(min=0)] += given["end"]
    if "durations" in given and "segments" in given:
        total = given["segments"] + given["durations"].unsqueeze(1)
        errors["segments"] = _rounding(total, dtype)
    if sizes.longest == 1:
        added = added + _assembled_segments(given, sizes)[:, :, 0]
    errors["emissions"] = torch.where(added > 0, _rounding(given["emissions"] + added, dtype), 0.0)
    return _assembled(errors, sizes)


def _rounding(size: Tensor, dtype: torch.dtype) -> Tensor:
    limits = torch.finfo(dtype)
    return 8 * limits.eps * size + (size - min(limits.max, LARGEST)).clamp(min=0)
