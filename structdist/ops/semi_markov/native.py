"""The compiled kernels of semi-Markov chains (ops/native/csrc/segment_*.cpp), on the CPU.

The forward pass, its adjoint and draws are compiled. They share their state with `rescaled`, whose
functions do the rest.
"""

from __future__ import annotations

import ctypes
from ctypes import byref

import torch
from torch import Tensor

from structdist.ops.edges import EdgeForm, edge_strides
from structdist.ops.native import library
from structdist.ops.native.library import INT, POINTER, ChainArguments, pointers
from structdist.ops.problem import Draw, Grads, Needs, Temperature
from structdist.ops.semi_markov.problem import FIRST_STEPS, SemiMarkovChain
from structdist.ops.semi_markov.rescaled import (
    entropy,
    entropy_adjoint,
    expectation,
    expectation_adjoint,
    k_best,
    log_partition,
    path_scores,
    path_scores_adjoint,
    relaxed_viterbi,
    relaxed_viterbi_adjoint,
    viterbi,
)
from structdist.ops.semi_markov.rescaled.draws import grad_of_temperature
from structdist.ops.semi_markov.rescaled.filtering import edge_marginals
from structdist.ops.semi_markov.rescaled.state import Filtered, at_last_step

__all__ = [
    "NAME",
    "entropy",
    "entropy_adjoint",
    "expectation",
    "expectation_adjoint",
    "filter",
    "gumbel_ffbs",
    "gumbel_ffbs_adjoint",
    "k_best",
    "log_partition",
    "log_partition_adjoint",
    "marginals",
    "path_scores",
    "path_scores_adjoint",
    "relaxed_viterbi",
    "relaxed_viterbi_adjoint",
    "sample_paths",
    "unsupported",
    "viterbi",
]

NAME = "native"
CPU = torch.device("cpu")  # said always: torch has a default device that is another
VERSION = 2  # of the interface, as kSegmentVersion in csrc/segments.h


class SegmentChainArguments(ctypes.Structure):
    _fields_ = [
        ("chain", ChainArguments),
        ("longest", INT),
        ("segments", POINTER),
        ("chain_stride", INT),
        ("step_stride", INT),
    ]


class SegmentStateArguments(ctypes.Structure):
    _fields_ = [(name, POINTER) for name in Filtered._fields]


class SegmentGradArguments(ctypes.Structure):
    _fields_ = [
        ("upstream", POINTER),
        ("num_samples", INT),
        ("of_lengths", POINTER),
        ("labels", POINTER),
        ("grad_emissions", POINTER),
        ("grad_begins", POINTER),
        ("grad_transitions", POINTER),
        ("grad_segments", POINTER),
    ]


class SegmentDrawArguments(ctypes.Structure):
    _fields_ = [
        ("num_samples", INT),
        ("noise", POINTER),
        ("temperature", POINTER),
        ("sample_stride", INT),
        ("chain_stride", INT),
        ("soft", POINTER),
        ("path", POINTER),
    ]


class SegmentSoftGradArguments(ctypes.Structure):
    _fields_ = [
        ("grad", POINTER),
        ("grad_ends", POINTER),
        ("grad_lengths", POINTER),
        ("grad_transitions", POINTER),
    ]


class SegmentEventArguments(ctypes.Structure):
    _fields_ = [
        ("num_draws", INT),
        ("num_steps", INT),
        ("longest", INT),
        ("num_labels", INT),
        ("num_threads", INT),
        ("soft", POINTER),
        ("events", POINTER),
    ]


class SegmentEventGradArguments(ctypes.Structure):
    _fields_ = [("grad_events", POINTER), ("grad_soft", POINTER)]


ARGUMENTS = (
    SegmentChainArguments,
    SegmentStateArguments,
    SegmentGradArguments,
    SegmentDrawArguments,
    SegmentSoftGradArguments,
    SegmentEventArguments,
    SegmentEventGradArguments,
)
LAYOUT = [VERSION, *map(ctypes.sizeof, ARGUMENTS)]


def _find_misfit() -> str | None:
    """Why the library that was loaded cannot serve semi-Markov chains, if it cannot."""
    if library.library is None:
        return library.unavailable
    layout = getattr(library.library, "segment_layout", None)
    numbers = (INT * len(LAYOUT))()
    if layout is not None:
        layout.restype = INT
        if layout(numbers, INT(len(numbers))) == len(LAYOUT) and list(numbers) == LAYOUT:
            return None
    return f"the compiled library is of another version: {library.REBUILD}"


_misfit = _find_misfit()


def unsupported(chain: SemiMarkovChain) -> str | None:
    """It serves CPU tensors, where it was built."""
    if _misfit is not None:
        return _misfit
    device = chain.emissions.device.type
    return None if device == "cpu" else f"it serves CPU tensors, not {device}"


def _call(name: str, chain: SemiMarkovChain, *arguments: ctypes.Structure) -> None:
    """Run a kernel on contiguous tensors, which the caller keeps alive."""
    emissions, transitions, segments, lengths = chain
    num_chains, num_steps, num_labels = emissions.shape
    if num_chains == 0:
        return
    table = segments.shape[-2] * num_labels
    strides = {
        EdgeForm.SHARED: (0, 0),
        EdgeForm.PER_CHAIN: (table, 0),
        EdgeForm.PER_STEP: (num_steps * table, table),
    }
    problem = SegmentChainArguments(
        ChainArguments(
            num_chains,
            num_steps,
            num_labels,
            *pointers(emissions, transitions, lengths),
            *edge_strides(transitions, num_steps),
            torch.get_num_threads(),
        ),
        segments.shape[-2],
        segments.data_ptr(),
        *strides[EdgeForm.of(segments)],
    )
    library.function_of(name, emissions.dtype)(byref(problem), *map(byref, arguments))


def _ready(chain: SemiMarkovChain) -> SemiMarkovChain:
    """The same in contiguous memory, as kernels want it."""
    return SemiMarkovChain(*(x.contiguous() for x in chain))


def _state(filtered: Filtered) -> SegmentStateArguments:
    return SegmentStateArguments(*pointers(*filtered))


def filter(chain: SemiMarkovChain) -> tuple[Filtered, bool]:
    """The forward pass, and whether a chain has no path. O(N T (K^2 + L K)) time, O(N T K) memory.

    What stands in the padding is 0.
    """
    chain = _ready(chain)
    emissions = chain.emissions.detach()
    doubles = torch.zeros(2, *emissions.shape, dtype=torch.float64, device=CPU)
    norms = torch.zeros(emissions.shape[:2], dtype=torch.float64, device=CPU)
    weights, incoming = torch.zeros_like(emissions), torch.ones_like(emissions)
    log_z = torch.zeros(len(emissions), dtype=torch.float64, device=CPU)
    filtered = Filtered(doubles[0], doubles[1], norms, weights, incoming, log_z)
    _call("segment_filter", chain, _state(filtered))
    return filtered, bool((log_z == -torch.inf).any())


def _adjoint(
    chain: SemiMarkovChain,
    filtered: Filtered,
    upstream: Tensor,
    needs: Needs,
    single: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor]:
    """Gradients of scores and of `begins` from that of `ends` [N, T, K].

    `single` are gradients of segments by last step and length [S, N, T, L], and their labels.
    """
    chain = _ready(chain)
    of_lengths, labels = (None, None) if single is None else single
    emissions, begins = torch.zeros_like(chain.emissions), torch.zeros_like(chain.emissions)
    transitions = torch.zeros_like(chain.transitions) if needs[1] else None
    segments = torch.zeros_like(chain.segments) if needs[2] else None
    upstream = upstream.to(emissions.dtype).contiguous()
    arguments = SegmentGradArguments(
        upstream.data_ptr(),
        0 if of_lengths is None else len(of_lengths),
        *pointers(of_lengths, labels, emissions, begins, transitions, segments),
    )
    _call("segment_filter_adjoint", chain, _state(filtered), arguments)
    return emissions, transitions, segments, begins


def log_partition_adjoint(
    chain: SemiMarkovChain, filtered: Filtered, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of log Z [N]. O(N T (K^2 + L K))."""
    upstream = at_last_step(filtered, chain.lengths, grad)
    return _adjoint(chain, filtered, upstream, needs)[:3]


def marginals(chain: SemiMarkovChain, filtered: Filtered, part: int) -> Tensor:
    """Of labels, moves, segments or first steps; see the reference."""
    if part == 2:
        num_chains, num_steps, num_labels = chain.emissions.shape
        shape = num_chains, num_steps, chain.longest, num_labels
        segments = chain.segments
        if EdgeForm.of(segments) is EdgeForm.PER_CHAIN:
            segments = segments.unsqueeze(1)
        chain = chain.with_scores([chain.emissions, chain.transitions, segments.expand(shape)])
    upstream = at_last_step(filtered, chain.lengths, torch.ones_like(filtered.log_z))
    emissions, _, by_size, begins = _adjoint(chain, filtered, upstream, (False, False, part == 2))
    if part == 1:
        return edge_marginals(chain, filtered, begins)
    found = begins if part == FIRST_STEPS else emissions
    return (found if by_size is None else by_size).clamp_(max=1)  # not a rounding error more


def sample_paths(chain: SemiMarkovChain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T + segments (K + L))."""
    chain, uniform = _ready(chain), uniform.contiguous()
    path = torch.zeros(uniform.shape, dtype=torch.long, device=CPU)
    arguments = SegmentDrawArguments(
        len(uniform), uniform.data_ptr(), None, 0, 0, None, path.data_ptr()
    )
    _call("sample_segments", chain, _state(filtered), arguments)
    return path


def gumbel_ffbs(
    chain: SemiMarkovChain, filtered: Filtered, gumbel: Tensor, temperature: Temperature
) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K + L], relaxed."""
    chain = _ready(chain)
    gumbel = gumbel.to(chain.emissions.dtype).contiguous()
    path = torch.zeros(gumbel.shape[:3], dtype=torch.long, device=CPU)
    draw = Draw(torch.zeros_like(gumbel), path)
    by_draw = _temperatures(temperature, path)
    _call("relaxed_segments", chain, _state(filtered), _draws(draw, by_draw, gumbel))
    return draw


def _temperatures(temperature: Temperature, path: Tensor) -> Tensor:
    """[S, N] float64, not necessarily in memory of its own."""
    given = torch.as_tensor(temperature, dtype=torch.float64, device=CPU)
    return given.expand(path.shape[:2])


def _draws(draw: Draw, temperatures: Tensor, noise: Tensor | None = None) -> SegmentDrawArguments:
    place = temperatures.data_ptr(), *temperatures.stride()
    return SegmentDrawArguments(len(draw.soft), *pointers(noise), *place, *pointers(*draw))


def gumbel_ffbs_adjoint(
    chain: SemiMarkovChain,
    filtered: Filtered,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed draws [S, N, T, K + L]. One sweep for all samples."""
    chain = _ready(chain)
    grad_ends, grad_lengths, moves = _through_softmax(chain, draw, temperature, grad, needs)
    single = grad_lengths, draw.path % chain.emissions.shape[-1]
    emissions, transitions, segments, _ = _adjoint(chain, filtered, grad_ends, needs, single)
    if transitions is not None and moves is not None:
        transitions = transitions + moves
    of_temperature = grad_of_temperature(draw, temperature, grad, needs, chain.longest)
    return emissions, transitions, segments, of_temperature


def _through_softmax(
    chain: SemiMarkovChain, draw: Draw, temperature: Temperature, grad: Tensor, needs: Needs
) -> tuple[Tensor, Tensor, Tensor | None]:
    """From the gradient of relaxed draws to those of ends, lengths [S, N, T, L] and moves."""
    grad, temperatures = grad.contiguous(), _temperatures(temperature, draw.path)
    grad_ends = torch.zeros_like(chain.emissions)
    grad_lengths = grad.new_empty(*draw.path.shape, chain.longest)
    moves = torch.zeros_like(chain.transitions) if needs[1] else None
    pulled = SegmentSoftGradArguments(*pointers(grad, grad_ends, grad_lengths, moves))
    _call("relaxed_segments_adjoint", chain, _draws(draw, temperatures), pulled)
    return grad_ends, grad_lengths, moves


# Relaxed events ------------------------------------------------------------------------------


def can_relax(soft: Tensor) -> bool:
    """Are these relaxed choices such that the library can make events of them?"""
    return _misfit is None and library.can_look_at(soft)


def relaxed_events(soft: Tensor, longest: int) -> Tensor:
    """[S, N, T, L, K]: from relaxed choices [S, N, T, K + L]."""
    soft = soft.contiguous()
    events = soft.new_empty(*soft.shape[:3], longest, soft.shape[3] - longest)
    arguments = _events(soft, longest, events)
    library.function_of("relaxed_events", soft.dtype)(byref(arguments))
    return events


def relaxed_events_adjoint(soft: Tensor, longest: int, grad: Tensor) -> Tensor:
    """[S, N, T, K + L], from the gradient of events; of that, only what draws touched is read."""
    soft, grad = soft.contiguous(), grad.contiguous()
    grad_soft = torch.empty_like(soft)
    pulled = SegmentEventGradArguments(*pointers(grad, grad_soft))
    arguments = _events(soft, longest, None)
    library.function_of("relaxed_events_adjoint", soft.dtype)(byref(arguments), byref(pulled))
    return grad_soft


def _events(soft: Tensor, longest: int, events: Tensor | None) -> SegmentEventArguments:
    num_samples, num_chains, num_steps, width = soft.shape
    sizes = num_samples * num_chains, num_steps, longest, width - longest
    return SegmentEventArguments(*sizes, torch.get_num_threads(), *pointers(soft, events))
