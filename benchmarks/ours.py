"""`structdist`, its backends by name, and the same work by its reference recurrences."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from benchmarks.operations import TEMPERATURE
from benchmarks.problem import Size
from structdist import LinearChainCRF
from structdist.ops import Chain, Draw, reference, use_backend
from structdist.ops.registry import backend_for

STRUCTDIST = {
    "log-z": lambda e, t: LinearChainCRF(e, t).log_partition,
    "marginals": lambda e, t: LinearChainCRF(e, t).marginals,
    "entropy": lambda e, t: LinearChainCRF(e, t).entropy(),
    "sample": lambda e, t: LinearChainCRF(e, t).sample(),
    "gumbel-ffbs": lambda e, t: LinearChainCRF(e, t).rsample(temperature=TEMPERATURE),
    "gumbel-ffbs-st": lambda e, t: LinearChainCRF(e, t).rsample(
        temperature=TEMPERATURE, straight_through=True
    ),
    "pm-mrf": lambda e, t: LinearChainCRF(e, t).perturb_and_map(temperature=TEMPERATURE),
    "pm-mrf-st": lambda e, t: LinearChainCRF(e, t).perturb_and_map(
        temperature=TEMPERATURE, straight_through=True
    ),
    "viterbi": lambda e, t: LinearChainCRF(e, t).argmax,
}


def by_backend(name: str) -> dict[str, Callable[..., Tensor]]:
    """All of structdist's operations by one of its backends."""
    return {operation: forced(name, work) for operation, work in STRUCTDIST.items()}


def forced(name: str, work: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same work by one backend."""

    def run(*scores: Tensor) -> Tensor:
        with use_backend(name):
            return work(*scores)

    return run


def backend_obstacle(name: str, size: Size, device: torch.device) -> str | None:
    """Why a backend cannot serve chains of a size on a device, as it says itself."""
    try:
        emissions = torch.empty(size.batch, size.length, size.states).to(device)
        with use_backend(name):
            backend_for(whole_chains(emissions, emissions.new_empty(size.states, size.states)))
    except (RuntimeError, ValueError) as error:
        return str(error)
    return None


def whole_chains(emissions: Tensor, transitions: Tensor) -> Chain:
    batch, num_steps, _ = emissions.shape
    lengths = torch.full((batch,), num_steps, device=emissions.device)
    return Chain(emissions, transitions, lengths)


def gumbel_like(shape: tuple[int, ...], like: Tensor) -> Tensor:
    noise = torch.empty(shape, dtype=like.dtype, device=like.device).exponential_()
    return noise.clamp_(min=torch.finfo(like.dtype).tiny).log_().neg_()


def _sample(emissions: Tensor, transitions: Tensor) -> Tensor:
    uniform = torch.rand(1, *emissions.shape[:2], dtype=torch.float64, device=emissions.device)
    path = reference.sample_paths(whole_chains(emissions, transitions), uniform)[0]
    return one_hot(path, emissions.shape[-1]).to(emissions.dtype)


def _gumbel_ffbs(emissions: Tensor, transitions: Tensor) -> Draw:
    gumbel = gumbel_like((1, *emissions.shape), emissions)
    return reference.gumbel_ffbs(whole_chains(emissions, transitions), gumbel, TEMPERATURE)


def _perturb_and_map(emissions: Tensor, transitions: Tensor) -> Draw:
    """Noise on the first node and on every edge."""
    batch, num_steps, num_states = emissions.shape
    first = emissions[:, :1] + gumbel_like((batch, 1, num_states), emissions)
    shape = (batch, num_steps - 1, num_states, num_states)
    edges = transitions + gumbel_like(shape, emissions)
    perturbed = whole_chains(torch.cat([first, emissions[:, 1:]], 1), edges)
    return reference.relaxed_viterbi(perturbed, TEMPERATURE)


def _straight_through(draw: Draw) -> Tensor:
    soft = draw.soft[0]
    hard = one_hot(draw.path[0], soft.shape[-1]).to(soft.dtype)
    return hard + (soft - soft.detach())


REFERENCE = {
    "log-z": lambda e, t: reference.log_partition(whole_chains(e, t)),
    "marginals": lambda e, t: reference.marginals(whole_chains(e, t), 0),
    "entropy": lambda e, t: reference.entropy(whole_chains(e, t)),
    "sample": _sample,
    "gumbel-ffbs": lambda e, t: _gumbel_ffbs(e, t).soft[0],
    "gumbel-ffbs-st": lambda e, t: _straight_through(_gumbel_ffbs(e, t)),
    "pm-mrf": lambda e, t: _perturb_and_map(e, t).soft[0],
    "pm-mrf-st": lambda e, t: _straight_through(_perturb_and_map(e, t)),
    "viterbi": lambda e, t: reference.viterbi(whole_chains(e, t)).path,
}
