"""torch-struct and pytorch-crf behind the benchmark's index convention (from i to j).

Imports are inside functions: both packages are optional.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from benchmarks.operations import TEMPERATURE
from benchmarks.problem import Size

if TYPE_CHECKING:
    import torch_struct
    import torchcrf


@lru_cache(1)
def _torch_struct_class() -> type[torch_struct.LinearChainCRF]:
    import torch_struct

    class QuietChain(torch_struct.LinearChainCRF):
        arg_constraints: dict[str, object] = {}  # torch warns at every object without it

    return QuietChain


def _chain(emissions: Tensor, transitions: Tensor) -> torch_struct.LinearChainCRF:
    """Edge scores [B, T-1, to, from]; the first carries both of its nodes."""
    edges = transitions.mT + emissions[:, 1:, :, None]
    first = edges[:, :1] + emissions[:, :1, None, :]
    return _torch_struct_class()(torch.cat([first, edges[:, 1:]], 1))


def _nodes(edges: Tensor) -> Tensor:
    """[B, T, K] from a table or an event over edges [B, T-1, to, from]."""
    return torch.cat([edges[:, :1].sum(-2), edges.sum(-1)], 1)


def _sample(emissions: Tensor, transitions: Tensor) -> Tensor:
    with torch.enable_grad():  # its samplers are gradients of log Z
        return _nodes(_chain(emissions, transitions).sample((1,))[0]).detach()


TORCH_STRUCT = {
    "log-z": lambda e, t: _chain(e, t).partition,
    "marginals": lambda e, t: _nodes(_chain(e, t).marginals),
    "entropy": lambda e, t: _chain(e, t).entropy,
    "sample": _sample,
    "gumbel-ffbs-st": lambda e, t: _nodes(_chain(e, t).gumbel_crf(TEMPERATURE)),
    "viterbi": lambda e, t: _nodes(_chain(e, t).argmax).argmax(-1),
}


def torch_struct_bytes(size: Size) -> int:
    """At least: a product of its first tree level is a float32 table [B, T/2, K, K, K].

    Three of them are alive at once: the sum over edges, its transpose and its gradient.
    """
    return 3 * 4 * size.batch * size.length // 2 * size.states**3


@lru_cache(8)
def _crf(num_states: int, device: torch.device) -> torchcrf.CRF:
    """Like a user's module, built once. Its start and end scores, which we lack, are 0."""
    import torchcrf

    crf = torchcrf.CRF(num_states, batch_first=True).to(device).requires_grad_(False)
    crf.start_transitions.zero_()
    crf.end_transitions.zero_()
    return crf


def _crf_log_z(emissions: Tensor, transitions: Tensor) -> Tensor:
    """`CRF.forward` is a path's score minus this; alone it has no public name."""
    crf = _crf(emissions.shape[-1], emissions.device)
    crf.transitions = transitions
    mask = emissions.new_ones(emissions.shape[:2], dtype=torch.bool)
    return crf._compute_normalizer(emissions.transpose(0, 1), mask.transpose(0, 1))


def _crf_viterbi(emissions: Tensor, transitions: Tensor) -> Tensor:
    crf = _crf(emissions.shape[-1], emissions.device)
    crf.transitions = transitions
    mask = emissions.new_ones(emissions.shape[:2], dtype=torch.bool)
    return torch.tensor(crf.decode(emissions, mask), device=emissions.device)


PYTORCH_CRF = {"log-z": _crf_log_z, "viterbi": _crf_viterbi}
