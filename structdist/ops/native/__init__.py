"""The compiled kernels (csrc/), on the CPU: the same algorithms as `rescaled`."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, full_precision
from structdist.ops.edges import EdgeForm, sum_to_form
from structdist.ops.native import library
from structdist.ops.native.library import call, pointers
from structdist.ops.problem import Best, Draw, Expected, Grads, Needs, Temperature, Values
from structdist.ops.reference import k_best
from structdist.ops.rescaled.state import (
    Filtered,
    edge_marginals,
    grad_of_temperature,
    scaled_exp,
    shifted_values,
    surprisals,
)
from structdist.ops.scoring import path_scores, path_scores_adjoint

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


def unsupported(chain: Chain) -> str | None:
    """It serves CPU tensors, where it was built."""
    if library.unavailable is not None:
        return library.unavailable
    device = chain.emissions.device.type
    return None if device == "cpu" else f"it serves CPU tensors, not {device}"


def _ready(chain: Chain) -> Chain:
    """Contiguous, and with lengths that lead nowhere else in memory, whatever was given."""
    emissions, transitions, lengths = chain
    lengths = lengths.clamp(0, emissions.shape[1])
    return Chain(emissions.contiguous(), transitions.contiguous(), lengths.contiguous())


def _like(x: Tensor | None, emissions: Tensor) -> Tensor | None:
    return None if x is None else x.to(emissions.dtype).contiguous()


# The forward pass ----------------------------------------------------------------------------


def filter(chain: Chain) -> Filtered:
    """The forward pass. O(N T K^2) time, O(N T K) memory."""
    chain = _ready(chain)
    emissions = chain.emissions
    log_alpha = emissions.new_empty(emissions.shape, dtype=torch.float64)
    log_z = emissions.new_empty(emissions.shape[0], dtype=torch.float64)
    weights, incoming = torch.zeros_like(emissions), torch.empty_like(emissions)
    filtered = Filtered(log_alpha, weights, incoming, log_z)
    call("filter", chain, _state(filtered))
    return filtered


def _state(filtered: Filtered) -> library.ctypes.Structure:
    return library.StateArguments(*pointers(*filtered))


def log_partition(filtered: Filtered) -> Tensor:
    """[N] float64."""
    return filtered.log_z


def log_partition_adjoint(chain: Chain, filtered: Filtered, grad: Tensor, needs: Needs) -> Grads:
    """Gradients of scores from that of log Z [N]. O(N T K^2)."""
    return _filter_adjoint(_ready(chain), filtered, None, grad, with_edges=needs[1])


def marginals(chain: Chain, filtered: Filtered, part: int) -> Tensor:
    """Of nodes [N, T, K], the gradient of log Z; or of edges [N, T-1, K, K]."""
    ones = torch.ones_like(filtered.log_z)
    nodes, _ = _filter_adjoint(_ready(chain), filtered, None, ones, with_edges=False)
    nodes = nodes.clamp_(max=1)  # not a rounding error more
    return edge_marginals(chain, filtered, nodes) if part else nodes


def _filter_adjoint(
    chain: Chain,
    filtered: Filtered,
    upstream: Tensor | None,
    grad_log_z: Tensor | None,
    with_edges: bool,
) -> tuple[Tensor, Tensor | None]:
    """Gradients from that of log_alpha [N, T, K] and that of log_z [N], either of them None."""
    emissions, transitions, _ = chain
    upstream, grad_log_z = _like(upstream, emissions), _like(grad_log_z, emissions)
    grad_emissions = torch.zeros_like(emissions)
    (after,), grad_edges = _edge_factors(chain, 1, with_edges), _edge_gradient(chain, with_edges)
    given = pointers(upstream, grad_log_z, grad_emissions, after, grad_edges)
    call("filter_adjoint", chain, _state(filtered), library.FilterGradArguments(*given))
    if after is not None and grad_edges is not None:
        products = scaled_exp(transitions) * _outer(filtered.weights, after)
        grad_edges = products + grad_edges.sum(0)
    return grad_emissions, grad_edges


def _edge_factors(chain: Chain, count: int, wanted: bool) -> list[Tensor | None]:
    """Room for the factors [N, T, K] whose product is the gradient of shared transitions."""
    if not wanted or chain.form is not EdgeForm.SHARED:
        return [None] * count
    return [torch.zeros_like(chain.emissions) for _ in range(count)]


def _edge_gradient(chain: Chain, wanted: bool) -> Tensor | None:
    """Room for gradients of edges: for shared transitions, one matrix a thread."""
    if not wanted:
        return None
    transitions = chain.transitions
    if chain.form is not EdgeForm.SHARED:
        return torch.zeros_like(transitions)
    return transitions.new_zeros(torch.get_num_threads(), *transitions.shape)


def _outer(before: Tensor, after: Tensor) -> Tensor:
    with full_precision(after.device):
        return before.flatten(0, 1).T @ after.flatten(0, 1)


# Expectations and entropies ------------------------------------------------------------------


def entropy(chain: Chain, filtered: Filtered) -> Expected:
    """In nats, with the conditional entropies of Algorithm 3 of Fu et al. O(N T K^2)."""
    return _expect(_ready(chain), filtered, None, None)


def entropy_adjoint(
    chain: Chain, filtered: Filtered, expected: Expected, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of the entropy [N]. O(N T K^2)."""
    emissions, transitions, _, _ = _expect_adjoint(
        _ready(chain), filtered, None, None, expected, grad, (True, needs[1], False, False)
    )
    return emissions, transitions


def expectation(chain: Chain, filtered: Filtered, values: Values) -> Expected:
    """Of values on nodes [N, T, K] and on edges (of any form). O(N T K^2)."""
    return _expect(*_with_values(chain, filtered, values))


def expectation_adjoint(
    chain: Chain,
    filtered: Filtered,
    values: Values,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients of scores and values from that of the expectation [N]. O(N T K^2)."""
    problem = _with_values(chain, filtered, values)
    emissions, transitions, nodes, edges = _expect_adjoint(*problem, expected, grad, needs)
    if transitions is not None:
        transitions = sum_to_form(transitions, chain.transitions)
    if edges is not None and values[1] is not None:
        edges = sum_to_form(edges, values[1])
    return emissions, transitions, nodes, edges


def _with_values(
    chain: Chain, filtered: Filtered, values: Values
) -> tuple[Chain, Filtered, Tensor, Tensor | None]:
    """Chains and values on their edges in one form; the state is the same in every form."""
    wide, (nodes, edges) = chain.with_values(values)
    nodes = nodes.double().contiguous()
    if values[1] is None:
        return _ready(chain), filtered, nodes, None
    return _ready(wide), filtered, nodes, _like(edges, chain.emissions)


def _expect(
    chain: Chain, filtered: Filtered, nodes: Tensor | None, edges: Tensor | None
) -> Expected:
    expected = Expected(torch.empty_like(filtered.log_z), torch.empty_like(filtered.log_alpha))
    call("expect", chain, _state(filtered), _expectation(nodes, edges, expected))
    return expected


def _expectation(
    nodes: Tensor | None, edges: Tensor | None, expected: Expected
) -> library.ctypes.Structure:
    return library.ExpectationArguments(*pointers(nodes, edges, expected.given, expected.value))


def _expect_adjoint(
    chain: Chain,
    filtered: Filtered,
    nodes: Tensor | None,
    edges: Tensor | None,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of emissions, transitions, node values and edge values."""
    emissions, transitions, _ = chain
    with_edges = needs[1] or needs[3]
    grad = grad.to(emissions.dtype).contiguous()
    grad_emissions = torch.zeros_like(emissions)
    grad_nodes = torch.zeros_like(emissions) if needs[2] else None
    p_mean, u, m = _edge_factors(chain, 3, with_edges)
    grad_edges, grad_values = _edge_gradient(chain, with_edges), _edge_gradient(chain, needs[3])
    made = pointers(grad, grad_emissions, grad_nodes, p_mean, u, m, grad_edges, grad_values)
    values = _expectation(nodes, edges, expected)
    arguments = library.ExpectGradArguments(*made)
    call("expect_adjoint", chain, _state(filtered), values, arguments)
    if p_mean is not None and u is not None and m is not None and grad_edges is not None:
        p, weight = filtered.weights, scaled_exp(transitions)
        mass, pull = _outer(p, m), _outer(p, u) + _outer(p_mean, m)
        if nodes is None:
            pull = pull + surprisals(transitions, weight) * mass
        elif edges is not None:
            pull = pull + shifted_values(transitions, weight, edges) * mass
        grad_edges = weight * pull + grad_edges.sum(0)
        if grad_values is not None:
            grad_values = weight * mass + grad_values.sum(0)
    return grad_emissions, grad_edges if needs[1] else None, grad_nodes, grad_values


# Draws ---------------------------------------------------------------------------------------


def sample_paths(chain: Chain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T K)."""
    chain, uniform = _ready(chain), uniform.contiguous()
    path = uniform.new_zeros(uniform.shape, dtype=torch.long)
    noise, made = pointers(uniform, path)
    draws = library.DrawArguments(len(uniform), noise, None, None, 0, 0, None, made)
    call("sample_paths", chain, _state(filtered), draws)
    return path


def gumbel_ffbs(chain: Chain, filtered: Filtered, gumbel: Tensor, temperature: Temperature) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K], and their relaxation. O(S N T K)."""
    return _relaxed_backtrack(_ready(chain), filtered.log_alpha, gumbel, temperature)


def gumbel_ffbs_adjoint(
    chain: Chain,
    filtered: Filtered,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed draws [S, N, T, K]. One sweep back for all samples."""
    chain = _ready(chain)
    grad_log_alpha, columns = _through_softmax(chain, draw, temperature, grad, needs)
    emissions, transitions = _filter_adjoint(
        chain, filtered, grad_log_alpha, None, with_edges=needs[1]
    )
    if transitions is not None and columns is not None:
        transitions = transitions + columns
    return emissions, transitions, grad_of_temperature(draw, temperature, grad, needs)


def _relaxed_backtrack(
    chain: Chain, prefix: Tensor, noise: Tensor | None, temperature: Temperature
) -> Draw:
    """Choose by log weights of prefixes [N, T, K], with noise [S, N, T, K] or (S = 1) without."""
    shape = (1, *chain.emissions.shape) if noise is None else noise.shape
    noise = _like(noise, chain.emissions)
    soft = chain.emissions.new_zeros(shape)
    draw = Draw(soft, soft.new_zeros(shape[:3], dtype=torch.long))
    temperatures = _temperatures(temperature, draw.path)
    draws = _draws(draw, temperatures, noise, prefix)
    call("relaxed_backtrack", chain, draws)
    return draw


def _temperatures(temperature: Temperature, path: Tensor) -> Tensor:
    """[S, N] float64, not necessarily in memory of its own."""
    temperature = torch.as_tensor(temperature, dtype=torch.float64, device=path.device)
    return temperature.expand(path.shape[:2])


def _draws(
    draw: Draw, temperatures: Tensor, noise: Tensor | None = None, prefix: Tensor | None = None
) -> library.ctypes.Structure:
    inputs, outputs = pointers(noise, prefix), pointers(*draw)
    place = temperatures.data_ptr(), *temperatures.stride()
    return library.DrawArguments(len(draw.soft), *inputs, *place, *outputs)


def _through_softmax(
    chain: Chain, draw: Draw, temperature: Temperature, grad: Tensor, needs: Needs
) -> tuple[Tensor, Tensor | None]:
    """From the gradient of relaxed draws to those of prefixes and of the transitions taken."""
    grad, temperatures = grad.contiguous(), _temperatures(temperature, draw.path)
    grad_prefix, grad_edges = torch.zeros_like(chain.emissions), _edge_gradient(chain, needs[1])
    pulled = library.SoftGradArguments(*pointers(grad, grad_prefix, grad_edges))
    call("relaxed_backtrack_adjoint", chain, _draws(draw, temperatures), pulled)
    if grad_edges is None:
        return grad_prefix, None
    columns = grad_edges.transpose(-1, -2)
    return grad_prefix, columns.sum(0) if chain.form is EdgeForm.SHARED else columns


# Best paths ----------------------------------------------------------------------------------


def viterbi(chain: Chain) -> Best:
    """The best path [N, T] and its score [N]. O(N T K^2)."""
    return _viterbi(_ready(chain), None)[0]


def _viterbi(chain: Chain, came_from: Tensor | None) -> tuple[Best, Tensor]:
    """The best path, and the best scores up to each state [N, T, K]; fills in where from."""
    emissions = chain.emissions
    path = emissions.new_zeros(emissions.shape[:2], dtype=torch.long)
    best = Best(path, emissions.new_empty(len(emissions), dtype=torch.float64))
    prefix = emissions.new_empty(emissions.shape, dtype=torch.float64)
    call("viterbi", chain, library.BestArguments(*pointers(*best, prefix, came_from)))
    return best, prefix


def relaxed_viterbi(chain: Chain, temperature: Temperature) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and where each best score comes from. O(N T K^2)."""
    chain = _ready(chain)
    came_from = chain.emissions.new_empty(chain.emissions.shape, dtype=torch.int32)
    _, prefix = _viterbi(chain, came_from)
    return _relaxed_backtrack(chain, prefix, None, temperature), came_from


def relaxed_viterbi_adjoint(
    chain: Chain,
    came_from: Tensor,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed path [1, N, T, K]. O(N T K)."""
    chain = _ready(chain)
    grad_prefix, columns = _through_softmax(chain, draw, temperature, grad, needs)
    grad_edges = _edge_gradient(chain, needs[1])
    pulled = library.PrefixGradArguments(*pointers(came_from, grad_prefix, grad_edges))
    call("prefix_adjoint", chain, pulled)
    transitions = None
    if grad_edges is not None and columns is not None:
        shared = chain.form is EdgeForm.SHARED
        transitions = (grad_edges.sum(0) if shared else grad_edges) + columns
    return grad_prefix, transitions, grad_of_temperature(draw, temperature, grad, needs)
