"""torch-struct, alone and with genbmm, and pytorch-crf behind our index convention (from i to j).

Imports are inside functions: these packages are optional.
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
def torch_struct_class() -> type[torch_struct.LinearChainCRF]:
    import torch_struct

    class QuietChain(torch_struct.LinearChainCRF):
        arg_constraints: dict[str, object] = {}  # torch warns at every object without it

    return QuietChain


def _chain(emissions: Tensor, transitions: Tensor) -> torch_struct.LinearChainCRF:
    return torch_struct_class()(edges_of(emissions, transitions))


def edges_of(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Edge scores [B, T-1, to, from]; the first carries both of its nodes."""
    edges = transitions.mT + emissions[:, 1:, :, None]
    first = edges[:, :1] + emissions[:, :1, None, :]
    return torch.cat([first, edges[:, 1:]], 1)


def nodes_of(edges: Tensor) -> Tensor:
    """[B, T, K] from a table or an event over edges [B, T-1, to, from]."""
    return torch.cat([edges[:, :1].sum(-2), edges.sum(-1)], 1)


def _sample(emissions: Tensor, transitions: Tensor) -> Tensor:
    with torch.enable_grad():  # its samplers are gradients of log Z
        return nodes_of(_chain(emissions, transitions).sample((1,))[0]).detach()


TORCH_STRUCT = {
    "log-z": lambda e, t: _chain(e, t).partition,
    "marginals": lambda e, t: nodes_of(_chain(e, t).marginals),
    "entropy": lambda e, t: _chain(e, t).entropy,
    "sample": _sample,
    "gumbel-ffbs-st": lambda e, t: nodes_of(_chain(e, t).gumbel_crf(TEMPERATURE)),
    "viterbi": lambda e, t: nodes_of(_chain(e, t).argmax).argmax(-1),
}


def torch_struct_bytes(size: Size) -> int:
    """At least: a product of its first tree level is a float32 table [B, T/2, K, K, K].

    Three of them are alive at once: the sum over edges, its transpose and its gradient.
    """
    return 3 * 4 * size.batch * size.length // 2 * size.states**3


def _fast_chain(semiring: str) -> torch_struct.LinearChain:
    """Its dynamic program over a semiring whose matrix products are kernels of genbmm."""
    import torch_struct
    from torch_struct.semirings import fast_semirings

    return torch_struct.LinearChain(getattr(fast_semirings, semiring))


def _fast_marginals(semiring: str, emissions: Tensor, transitions: Tensor) -> Tensor:
    """[B, T, K]: marginals, a best path or a draw, for all of which it takes gradients."""
    with torch.enable_grad():
        return nodes_of(_fast_chain(semiring).marginals(edges_of(emissions, transitions)))


TORCH_STRUCT_GENBMM = {
    "log-z": lambda e, t: _fast_chain("FastLogSemiring").sum(edges_of(e, t)),
    "marginals": lambda e, t: _fast_marginals("FastLogSemiring", e, t),
    "sample": lambda e, t: _fast_marginals("FastSampleSemiring", e, t).detach(),
    "viterbi": lambda e, t: _fast_marginals("FastMaxSemiring", e, t).argmax(-1),
}


def genbmm_obstacle(size: Size, device: torch.device) -> str | None:
    """Why genbmm does not work, whatever the size: only a call tells.

    Where no GPU was seen at install, it can be imported, and has no kernels.
    """
    zeros = torch.zeros(1, 2, 2)  # log(e^0 e^0 + e^0 e^0) = log 2
    try:
        import genbmm

        products = genbmm.logbmm(zeros.to(device), zeros.to(device)).cpu()
    except ModuleNotFoundError:
        return "genbmm is not installed"
    except Exception as error:
        return f"a call of genbmm.logbmm raised {type(error).__name__}: {error}".splitlines()[0]
    if not torch.allclose(products, torch.tensor(2.0).log()):
        return "a call of genbmm.logbmm gave a wrong answer"
    return None


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
