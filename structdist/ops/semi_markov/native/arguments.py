"""What the compiled kernels of semi-Markov chains are given, and how they are called.

The structs have their twins in ops/native/csrc/segments.h.
"""

from __future__ import annotations

import ctypes
from ctypes import byref

import torch

from structdist.ops.edges import edge_strides
from structdist.ops.native import library
from structdist.ops.native.library import INT, POINTER, ChainArguments, pointers
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.state import Filtered

VERSION = 3  # of the interface, as kSegmentVersion in csrc/segments.h
CPU = torch.device("cpu")  # said always: torch has a default device that is another


class PlaceArguments(ctypes.Structure):
    _fields_ = [("chain_stride", INT), ("step_stride", INT), ("length_stride", INT)]


class SegmentChainArguments(ctypes.Structure):
    _fields_ = [
        ("chain", ChainArguments),
        ("longest", INT),
        ("segments", POINTER),
        ("chain_stride", INT),
        ("step_stride", INT),
    ]


class StateArguments(ctypes.Structure):
    _fields_ = [(name, POINTER) for name in Filtered._fields]


class GradArguments(ctypes.Structure):
    _fields_ = [
        ("upstream", POINTER),
        ("grad_log_z", POINTER),
        ("num_samples", INT),
        ("of_lengths", POINTER),
        ("labels", POINTER),
        ("grad_emissions", POINTER),
        ("grad_begins", POINTER),
        ("grad_transitions", POINTER),
        ("grad_segments", POINTER),
    ]


class DrawArguments(ctypes.Structure):
    _fields_ = [
        ("num_samples", INT),
        ("noise", POINTER),
        ("temperature", POINTER),
        ("sample_stride", INT),
        ("chain_stride", INT),
        ("soft", POINTER),
        ("path", POINTER),
    ]


class SoftGradArguments(ctypes.Structure):
    _fields_ = [
        ("grad", POINTER),
        ("grad_ends", POINTER),
        ("grad_lengths", POINTER),
        ("grad_transitions", POINTER),
    ]


class EventArguments(ctypes.Structure):
    _fields_ = [
        ("num_draws", INT),
        ("num_steps", INT),
        ("longest", INT),
        ("num_labels", INT),
        ("num_threads", INT),
        ("soft", POINTER),
        ("events", POINTER),
    ]


class EventGradArguments(ctypes.Structure):
    _fields_ = [("grad_events", POINTER), ("grad_soft", POINTER)]


class ExpectationArguments(ctypes.Structure):
    _fields_ = [
        ("is_entropy", INT),
        ("step_values", POINTER),
        ("move_values", POINTER),
        ("segment_values", POINTER),
        ("segment_places", PlaceArguments),
        ("ends", POINTER),
        ("begins", POINTER),
        ("value", POINTER),
    ]


class ExpectGradArguments(ctypes.Structure):
    _fields_ = [
        ("grad_value", POINTER),
        ("grad_emissions", POINTER),
        ("grad_transitions", POINTER),
        ("grad_segments", POINTER),
        ("grad_step_values", POINTER),
        ("grad_move_values", POINTER),
        ("grad_segment_values", POINTER),
        ("segment_places", PlaceArguments),
    ]


class BestArguments(ctypes.Structure):
    _fields_ = [("path", POINTER), ("score", POINTER), ("came_from", POINTER)]


class PrefixGradArguments(ctypes.Structure):
    _fields_ = [
        ("came_from", POINTER),
        ("of_lengths", POINTER),
        ("labels", POINTER),
        ("grad_ends", POINTER),
        ("grad_begins", POINTER),
        ("grad_emissions", POINTER),
        ("grad_transitions", POINTER),
        ("grad_segments", POINTER),
    ]


class PathArguments(ctypes.Structure):
    _fields_ = [
        ("num_samples", INT),
        ("paths", POINTER),
        ("scores", POINTER),
        ("grad", POINTER),
        ("grad_emissions", POINTER),
        ("grad_transitions", POINTER),
        ("grad_segments", POINTER),
    ]


class NodeArguments(ctypes.Structure):
    _fields_ = [
        ("num_chains", INT),
        ("num_steps", INT),
        ("num_labels", INT),
        ("nodes", POINTER),
        ("segments", POINTER),
        ("chain_stride", INT),
        ("step_stride", INT),
        ("out", POINTER),
    ]


ARGUMENTS = (
    SegmentChainArguments,
    StateArguments,
    GradArguments,
    DrawArguments,
    SoftGradArguments,
    EventArguments,
    EventGradArguments,
    ExpectationArguments,
    ExpectGradArguments,
    BestArguments,
    PrefixGradArguments,
    PathArguments,
    NodeArguments,
)
LAYOUT = [VERSION, *map(ctypes.sizeof, ARGUMENTS)]


def find_misfit() -> str | None:
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


misfit = find_misfit()


def can_serve(x: torch.Tensor) -> bool:
    """Can the library work on such a tensor?"""
    return misfit is None and library.can_look_at(x)


def call(name: str, chain: SemiMarkovChain, *arguments: ctypes.Structure) -> None:
    """Run a kernel on contiguous tensors, which the caller keeps alive."""
    emissions, transitions, segments, lengths = chain
    num_chains, num_steps, num_labels = emissions.shape
    if num_chains == 0:
        return
    places = places_of(segments)
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
        places.chain_stride,
        places.step_stride,
    )
    library.kernels[name, emissions.dtype](byref(problem), *map(byref, arguments))


def places_of(segments: torch.Tensor) -> PlaceArguments:
    """Where scores or values of segments stand that have a form of `SemiMarkovChain`."""
    *of_chain, by_length, _ = segments.stride()
    by_chain, by_step = (*of_chain, 0, 0)[:2]
    return PlaceArguments(by_chain, by_step, by_length)


def ready(chain: SemiMarkovChain) -> SemiMarkovChain:
    """The same in contiguous memory, as kernels want it."""
    return SemiMarkovChain(*(x.contiguous() for x in chain))


def state_of(filtered: Filtered) -> StateArguments:
    return StateArguments(*pointers(*filtered))
