"""Segments of one step as nodes of a linear chain: their scores, and the way back.

Each has a plain twin in `single_steps`.
"""

from __future__ import annotations

from ctypes import byref

import torch
from torch import Tensor

from structdist.ops.native import library
from structdist.ops.native.library import pointers
from structdist.ops.semi_markov.native.arguments import NodeArguments


def scores_of_nodes(steps: Tensor, segments: Tensor) -> Tensor:
    """[N, T, K]: scores [N, T, K] plus those of segments [1 or N, 1 or T, K], finite where both."""
    steps, segments = steps.contiguous(), segments.contiguous()
    nodes = torch.empty_like(steps)
    _call("scores_of_nodes", steps, segments, segments.shape, nodes)
    return nodes


def sum_over_steps(nodes: Tensor, num_chains: int) -> Tensor:
    """[N, 1, K], the sum of each chain of [N, T, K], or (num_chains = 1) [1, 1, K], that of all."""
    found = nodes.new_zeros(num_chains, 1, nodes.shape[2])
    _call("sum_over_steps", nodes.contiguous(), None, found.shape, found)
    return found


def _call(name: str, nodes: Tensor, segments: Tensor | None, form: torch.Size, out: Tensor) -> None:
    """Run a kernel on contiguous tensors, segments (given or found) being of a form."""
    num_chains, num_steps, num_labels = form
    by_chain = 0 if num_chains == 1 else num_steps * num_labels
    by_step = 0 if num_steps == 1 else num_labels
    inputs, (made,) = pointers(nodes, segments), pointers(out)
    arguments = NodeArguments(*nodes.shape, *inputs, by_chain, by_step, made)
    library.kernels[name, nodes.dtype](byref(arguments))
