"""The compiled kernels (csrc/), on the CPU: the same function names as `rescaled`.

The library is plain C++ behind C names, built at install where there is a compiler, and does not
depend on the version of torch. Without it, or with STRUCTDIST_NATIVE=0, `rescaled` does the work.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import torch
from torch import Tensor

from structdist.ops.chain import (
    Best,
    Chain,
    Draw,
    Expected,
    ExpectGrads,
    Filtered,
    FilterGrads,
    full_precision,
    scaled_exp,
    shifted_values,
)


def _load() -> ctypes.CDLL | None:
    if os.environ.get("STRUCTDIST_NATIVE", "1") == "0":
        return None
    for suffix in EXTENSION_SUFFIXES:
        file = Path(__file__).with_name("_native" + suffix)
        if file.exists():
            try:
                library = ctypes.CDLL(str(file))
            except OSError as error:
                warnings.warn(
                    f"structdist runs without its compiled kernels: {error}", stacklevel=2
                )
                return None
            return library if library.supported() else None
    return None


_library = _load()


def available() -> bool:
    """Was the library built, can this processor run it, and is it wanted?"""
    return _library is not None


class _Chain(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_int64) for name in ("num_chains", "num_steps", "num_states")],
        *[(name, ctypes.c_void_p) for name in ("emissions", "transitions", "lengths")],
        *[(name, ctypes.c_int64) for name in ("chain_stride", "step_stride", "num_threads")],
    ]


class _Filtered(ctypes.Structure):
    _fields_ = [
        (n, ctypes.c_void_p) for n in ("log_alpha", "log_norm", "weights", "arrival", "log_z")
    ]


class _FilterGrad(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            *("upstream", "grad_log_z"),
            *("grad_emissions", "after", "grad_transitions"),
        )
    ]


class _Expectation(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in ("node_values", "edge_values", "mean", "value")]


class _ExpectGrad(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            *("grad_value", "grad_emissions", "grad_nodes", "p_mean", "u", "m"),
            *("grad_transitions", "grad_edge_values"),
        )
    ]


class _Draws(ctypes.Structure):
    _fields_ = [
        ("num_samples", ctypes.c_int64),
        ("noise", ctypes.c_void_p),
        ("prefix", ctypes.c_void_p),
        ("temperature", ctypes.c_double),
        ("soft", ctypes.c_void_p),
        ("path", ctypes.c_void_p),
    ]


class _SoftGrad(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in ("grad", "grad_prefix", "grad_transitions")]


class _Best(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in ("path", "score", "prefix", "came_from")]


class _PrefixGrad(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in ("came_from", "grad", "grad_transitions")]


def _call(name: str, chain: Chain, *arguments: ctypes.Structure) -> None:
    emissions, transitions, lengths = chain
    num_chains, num_steps, num_states = emissions.shape
    if num_chains == 0:
        return
    matrix = num_states * num_states
    strides = {2: (0, 0), 3: (matrix, 0), 4: ((num_steps - 1) * matrix, matrix)}
    problem = _Chain(
        *emissions.shape,
        *_pointers(emissions, transitions, lengths),
        *strides[transitions.dim()],
        torch.get_num_threads(),
    )
    kind = {torch.float32: "float", torch.float64: "double"}[emissions.dtype]
    function = getattr(_library, f"{name}_{kind}")
    function(ctypes.byref(problem), *map(ctypes.byref, arguments))


def _pointers(*tensors: Tensor | None) -> list[int | None]:
    """Addresses, which the caller keeps alive. A kernel reads and writes contiguous memory only."""
    for tensor in tensors:
        assert tensor is None or tensor.is_contiguous()
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


def _ready(chain: Chain) -> Chain:
    """Contiguous, and with lengths that lead nowhere else in memory, whatever was given."""
    emissions, transitions, lengths = chain
    lengths = lengths.clamp(0, emissions.shape[1])
    return Chain(emissions.contiguous(), transitions.contiguous(), lengths.contiguous())


def filter(chain: Chain) -> Filtered:
    """The forward pass. O(N T K^2) time, O(N T K) memory."""
    chain = _ready(chain)
    emissions = chain.emissions
    log_alpha = emissions.new_empty(emissions.shape, dtype=torch.float64)
    log_norm = emissions.new_zeros(emissions.shape[:2], dtype=torch.float64)
    log_z = emissions.new_empty(emissions.shape[0], dtype=torch.float64)
    weights, arrival = torch.zeros_like(emissions), torch.empty_like(emissions)
    filtered = Filtered(log_alpha, log_norm, weights, arrival, log_z)
    _call("filter", chain, _Filtered(*_pointers(*filtered)))
    return filtered


def filter_adjoint(
    chain: Chain,
    filtered: Filtered,
    upstream: Tensor | None,
    grad_log_z: Tensor | None,
    with_edges: bool = True,
) -> FilterGrads:
    """Gradients from that of log_alpha [N, T, K] and that of log_z [N], either of them None."""
    chain = _ready(chain)
    emissions, transitions, _ = chain
    upstream, grad_log_z = _like(upstream, emissions), _like(grad_log_z, emissions)
    grad_emissions = torch.zeros_like(emissions)
    (after,) = _edge_factors(chain, 1)
    grad_edges = _edge_gradient(chain)
    given = _pointers(upstream, grad_log_z)
    made = _pointers(grad_emissions, after, grad_edges)
    _call("filter_adjoint", chain, _Filtered(*_pointers(*filtered)), _FilterGrad(*given, *made))
    if not with_edges:
        return FilterGrads(grad_emissions, None)
    if transitions.dim() > 2:
        return FilterGrads(grad_emissions, grad_edges)
    grad = scaled_exp(transitions) * _outer(filtered.weights, after) + grad_edges.sum(0)
    return FilterGrads(grad_emissions, grad)


def expect(chain: Chain, filtered: Filtered, nodes: Tensor, edges: Tensor | None) -> Expected:
    """Conditional means of node values [N, T, K] and edge values (in the transitions' form)."""
    chain = _ready(chain)
    nodes, edges = nodes.double().contiguous(), _like(edges, chain.emissions)
    expected = Expected(torch.empty_like(nodes), torch.empty_like(filtered.log_z))
    values = _Expectation(*_pointers(nodes, edges, *expected))
    _call("expect", chain, _Filtered(*_pointers(*filtered)), values)
    return expected


def expect_adjoint(
    chain: Chain,
    filtered: Filtered,
    nodes: Tensor,
    edges: Tensor | None,
    expected: Expected,
    grad_value: Tensor,
) -> ExpectGrads:
    """Gradients of the expectation from its own [N]."""
    chain = _ready(chain)
    emissions, transitions, _ = chain
    nodes, edges = nodes.double().contiguous(), _like(edges, emissions)
    grad_value = grad_value.to(emissions.dtype).contiguous()
    grad_emissions, grad_nodes = torch.zeros_like(emissions), torch.zeros_like(emissions)
    p_mean, u, m = _edge_factors(chain, 3)
    grad_edges, grad_edge_values = _edge_gradient(chain), _edge_gradient(chain)
    made = _pointers(grad_value, grad_emissions, grad_nodes, p_mean, u, m)
    values = _Expectation(*_pointers(nodes, edges, *expected))
    arguments = _ExpectGrad(*made, *_pointers(grad_edges, grad_edge_values))
    _call("expect_adjoint", chain, _Filtered(*_pointers(*filtered)), values, arguments)
    if transitions.dim() == 2:
        p = filtered.weights
        weight, mass = scaled_exp(transitions), _outer(p, m)
        pull = _outer(p, u) + _outer(p_mean, m)
        if edges is not None:
            pull = pull + shifted_values(transitions, weight, edges) * mass
        grad_edges = weight * pull + grad_edges.sum(0)
        grad_edge_values = weight * mass + grad_edge_values.sum(0)
    return ExpectGrads(grad_emissions, grad_edges, grad_nodes, grad_edge_values)


def _like(x: Tensor | None, emissions: Tensor) -> Tensor | None:
    return None if x is None else x.to(emissions.dtype).contiguous()


def _edge_factors(chain: Chain, count: int) -> list[Tensor | None]:
    """Room for the factors [N, T, K] whose product is the gradient of shared transitions."""
    if chain.transitions.dim() > 2:
        return [None] * count
    return [torch.zeros_like(chain.emissions) for _ in range(count)]


def _edge_gradient(chain: Chain) -> Tensor:
    """Room for gradients of edges: for shared transitions, one matrix a thread."""
    transitions = chain.transitions
    if transitions.dim() > 2:
        return torch.zeros_like(transitions)
    return transitions.new_zeros(torch.get_num_threads(), *transitions.shape)


def _outer(before: Tensor | None, after: Tensor | None) -> Tensor:
    assert before is not None
    assert after is not None
    with full_precision(after.device):
        return before.flatten(0, 1).T @ after.flatten(0, 1)


def sample_paths(chain: Chain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T K)."""
    chain, uniform = _ready(chain), uniform.contiguous()
    path = uniform.new_zeros(uniform.shape, dtype=torch.long)
    noise, made = _pointers(uniform, path)
    draws = _Draws(len(uniform), noise, None, 1.0, None, made)
    _call("sample_paths", chain, _Filtered(*_pointers(*filtered)), draws)
    return path


def gumbel_ffbs(chain: Chain, filtered: Filtered, gumbel: Tensor, temperature: float) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K], and their relaxation. O(S N T K)."""
    return _relaxed_backtrack(_ready(chain), filtered.log_alpha, gumbel, temperature)


def gumbel_ffbs_adjoint(
    chain: Chain, filtered: Filtered, draw: Draw, grad: Tensor, temperature: float
) -> FilterGrads:
    """Gradients from that of the relaxed draws [S, N, T, K]. One sweep back for all samples."""
    chain = _ready(chain)
    grad_log_alpha, columns = _through_softmax(chain, draw, grad, temperature)
    grads = filter_adjoint(chain, filtered, grad_log_alpha, None)
    assert grads.transitions is not None
    return FilterGrads(grads.emissions, grads.transitions + columns)


def _relaxed_backtrack(
    chain: Chain, prefix: Tensor, noise: Tensor | None, temperature: float
) -> Draw:
    """Choose by log weights of prefixes [N, T, K], with noise [S, N, T, K] or (S = 1) without."""
    shape = (1, *chain.emissions.shape) if noise is None else noise.shape
    noise = None if noise is None else noise.contiguous()
    soft = chain.emissions.new_zeros(shape)
    draw = Draw(soft, soft.new_zeros(shape[:3], dtype=torch.long))
    draws = _Draws(shape[0], *_pointers(noise, prefix), temperature, *_pointers(*draw))
    _call("relaxed_backtrack", chain, draws)
    return draw


def _through_softmax(
    chain: Chain, draw: Draw, grad: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """From the gradient of relaxed draws to those of prefixes and of the transitions taken."""
    grad = grad.contiguous()
    grad_prefix, grad_edges = torch.zeros_like(chain.emissions), _edge_gradient(chain)
    draws = _Draws(len(grad), None, None, temperature, *_pointers(*draw))
    pulled = _SoftGrad(*_pointers(grad, grad_prefix, grad_edges))
    _call("relaxed_backtrack_adjoint", chain, draws, pulled)
    columns = grad_edges.transpose(-1, -2)
    return grad_prefix, columns.sum(0) if chain.transitions.dim() == 2 else columns


def viterbi(chain: Chain) -> Best:
    """The best path [N, T] and its score [N]. O(N T K^2)."""
    return _viterbi(_ready(chain), None)[0]


def _viterbi(chain: Chain, came_from: Tensor | None) -> tuple[Best, Tensor]:
    """The best path, and the best scores up to each state [N, T, K]; fills in where from."""
    emissions = chain.emissions
    path = emissions.new_zeros(emissions.shape[:2], dtype=torch.long)
    best = Best(path, emissions.new_empty(len(emissions), dtype=torch.float64))
    prefix = emissions.new_empty(emissions.shape, dtype=torch.float64)
    _call("viterbi", chain, _Best(*_pointers(*best, prefix, came_from)))
    return best, prefix


def relaxed_viterbi(chain: Chain, temperature: float) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and what the adjoint needs. O(N T K^2)."""
    chain = _ready(chain)
    came_from = chain.emissions.new_empty(chain.emissions.shape, dtype=torch.int32)
    _, prefix = _viterbi(chain, came_from)
    return _relaxed_backtrack(chain, prefix, None, temperature), came_from


def relaxed_viterbi_adjoint(
    chain: Chain, came_from: Tensor, draw: Draw, grad: Tensor, temperature: float
) -> FilterGrads:
    """Gradients from that of the relaxed path [1, N, T, K]. O(N T K)."""
    chain = _ready(chain)
    grad_prefix, columns = _through_softmax(chain, draw, grad, temperature)
    grad_edges = _edge_gradient(chain)
    pulled = _PrefixGrad(*_pointers(came_from, grad_prefix, grad_edges))
    _call("prefix_adjoint", chain, pulled)
    grad_edges = grad_edges.sum(0) if chain.transitions.dim() == 2 else grad_edges
    return FilterGrads(grad_prefix, grad_edges + columns)
