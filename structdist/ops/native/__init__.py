"""The compiled kernels (csrc/), on the CPU: the same algorithms as `rescaled`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import Chain
from structdist.ops.edges import sum_to_form
from structdist.ops.native import library
from structdist.ops.native.library import call, pointers
from structdist.ops.problem import Best, Draw, Expected, Grads, Needs, Temperature, Values
from structdist.ops.reference import k_best
from structdist.ops.rescaled.state import grad_of_temperature

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


def unsupported(chain: Chain) -> str | None:
    """It serves CPU tensors, where it was built."""
    if library.unavailable is not None:
        return library.unavailable
    emissions = chain.emissions
    return None if emissions.is_cpu else f"it serves CPU tensors, not {emissions.device.type}"


def _ready(chain: Chain) -> Chain:
    """The same in contiguous memory, as kernels want it."""
    emissions, transitions, lengths = chain
    if emissions.is_contiguous() and transitions.is_contiguous() and lengths.is_contiguous():
        return chain
    return Chain(*(x.contiguous() for x in chain))


def _like(x: Tensor | None, emissions: Tensor) -> Tensor | None:
    if x is None or (x.dtype == emissions.dtype and x.is_contiguous()):
        return x
    return x.to(emissions.dtype).contiguous()


# The forward pass ----------------------------------------------------------------------------


class Filtered(NamedTuple):
    """The forward state, in one piece of memory: tensors cost more than small chains do."""

    memory: Tensor  # bytes; csrc/arguments.h says what stands where, log Z first
    log_alpha: Tensor | None  # [N, T, K] float64, or None if no chain is in log space


def filter(chain: Chain) -> tuple[Filtered, bool]:
    """The forward pass, and whether a chain has no path. O(N T K^2) time, O(N T K) memory."""
    chain = _ready(chain)
    emissions = chain.emissions
    shape = emissions.shape
    memory = torch.empty(_bytes_of_state(emissions), dtype=torch.uint8, device=CPU)
    log_alpha = None if chain.is_shared else torch.empty(shape, dtype=torch.float64, device=CPU)
    filtered = Filtered(memory, log_alpha)
    findings = call("filter", chain, _state(filtered))
    num_impossible, num_underflowed = findings >> 32, findings & 0xFFFFFFFF
    if num_underflowed > 0:
        filtered = Filtered(memory, torch.empty(shape, dtype=torch.float64, device=CPU))
        num_impossible += call("filter_in_log_space", chain, _state(filtered)) >> 32
    return filtered, num_impossible > 0


def _bytes_of_row(emissions: Tensor) -> int:
    """Of K numbers, padded to whole vectors."""
    return (emissions.shape[2] * emissions.element_size() + 31) // 32 * 32


def _bytes_of_state(emissions: Tensor) -> int:
    """Of log Z, to a whole cache line; rows of weights and of incoming mass, shifts and flags."""
    num_chains, num_steps, _ = emissions.shape
    rows = 2 * _bytes_of_row(emissions) + 8
    return (8 * num_chains + 63) // 64 * 64 + num_chains * (num_steps * rows + 1)


def _state(filtered: Filtered) -> library.ctypes.Structure:
    memory, log_alpha = filtered
    return library.StateArguments(
        memory.data_ptr(), None if log_alpha is None else log_alpha.data_ptr()
    )


def log_partition(chain: Chain, filtered: Filtered, dtype: torch.dtype) -> Tensor:
    """[N], in float64 or rounded."""
    log_z = torch.empty(chain.emissions.shape[0], dtype=dtype, device=CPU)
    library.round_finite(filtered.memory.data_ptr(), log_z)
    return log_z


def log_partition_adjoint(chain: Chain, filtered: Filtered, grad: Tensor, needs: Needs) -> Grads:
    """Gradients of scores from that of log Z [N]. O(N T K^2)."""
    return _filter_adjoint(_ready(chain), filtered, None, grad, with_edges=needs[1])


def marginals(chain: Chain, filtered: Filtered, part: int) -> Tensor:
    """Of nodes [N, T, K], the gradient of log Z; or of edges [N, T-1, K, K]."""
    chain, ones = _ready(chain), chain.emissions.new_ones(len(chain.emissions))
    nodes, _ = _filter_adjoint(chain, filtered, None, ones, with_edges=False)
    nodes = nodes.clamp_(max=1)  # not a rounding error more
    if part == 0:
        return nodes
    num_chains, num_steps, num_states = nodes.shape
    edges = nodes.new_empty(num_chains, num_steps - 1, num_states, num_states)
    arguments = library.EdgeMarginalArguments(*pointers(nodes, edges))
    call("edge_marginals", chain, _state(filtered), arguments)
    return edges


def _filter_adjoint(
    chain: Chain,
    filtered: Filtered,
    upstream: Tensor | None,
    grad_log_z: Tensor | None,
    with_edges: bool,
) -> tuple[Tensor, Tensor | None]:
    """Gradients from that of log_alpha [N, T, K] and that of log_z [N], either of them None."""
    emissions = chain.emissions
    upstream, grad_log_z = _like(upstream, emissions), _like(grad_log_z, emissions)
    grad_emissions = torch.empty_like(emissions)
    grad_edges = _room_for_edges(chain, with_edges)
    arguments = library.FilterGradArguments(
        None if upstream is None else upstream.data_ptr(),
        None if grad_log_z is None else grad_log_z.data_ptr(),
        grad_emissions.data_ptr(),
        None if grad_edges is None else grad_edges.data_ptr(),
    )
    call("filter_adjoint", chain, _state(filtered), arguments)
    return grad_emissions, grad_edges


def _room_for_edges(chain: Chain, wanted: bool) -> Tensor | None:
    if not wanted:
        return None
    make = torch.empty_like if chain.emissions.shape[0] else torch.zeros_like
    return make(chain.transitions)


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
    nodes, edges = values
    nodes = torch.zeros_like(chain.emissions) if nodes is None else nodes
    nodes = nodes.double().contiguous()
    if edges is None:
        return _ready(chain), filtered, nodes, None
    wide, (_, edges) = chain.with_values((nodes, edges))
    return _ready(wide), filtered, nodes, _like(edges, chain.emissions)


def _expect(
    chain: Chain, filtered: Filtered, nodes: Tensor | None, edges: Tensor | None
) -> Expected:
    shape = _shape_of_means(chain.emissions, filtered.log_alpha is not None)
    given = torch.empty(shape, dtype=torch.uint8, device=CPU)
    value = torch.empty(len(chain.emissions), dtype=torch.float64, device=CPU)
    expected = Expected(value, given)
    values = _expectation(chain, filtered, nodes, edges, expected)
    call("expect", chain, _state(filtered), values)
    return expected


def _shape_of_means(emissions: Tensor, in_log_space: bool) -> tuple[int, int, int]:
    """Bytes for two rows of numbers for each step of each chain; in log space also of doubles."""
    num_chains, num_steps, _ = emissions.shape
    row = _bytes_of_row(emissions)
    doubles = row * 8 // emissions.element_size() if in_log_space else 0
    return num_chains, num_steps, 2 * row + doubles


def _expectation(
    chain: Chain,
    filtered: Filtered,
    nodes: Tensor | None,
    edges: Tensor | None,
    expected: Expected,
) -> library.ctypes.Structure:
    """Values, and what is given with the expectation: weighed means, ratios and means."""
    num_chains, num_steps, _ = expected.given.shape
    p_mean, rows = (
        expected.given.data_ptr(),
        num_chains * num_steps * _bytes_of_row(chain.emissions),
    )
    mean = None if filtered.log_alpha is None else p_mean + 2 * rows
    return library.ExpectationArguments(
        *pointers(nodes, edges), p_mean, p_mean + rows, mean, expected.value.data_ptr()
    )


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
    emissions, with_edges = chain.emissions, needs[1] or needs[3]
    grad = grad.to(emissions.dtype).contiguous()
    grad_emissions = torch.empty_like(emissions)
    grad_nodes = torch.empty_like(emissions) if needs[2] else None
    grad_edges, grad_values = _room_for_edges(chain, with_edges), _room_for_edges(chain, needs[3])
    made = pointers(grad, grad_emissions, grad_nodes, grad_edges, grad_values)
    values = _expectation(chain, filtered, nodes, edges, expected)
    arguments = library.ExpectGradArguments(*made)
    call("expect_adjoint", chain, _state(filtered), values, arguments)
    return grad_emissions, grad_edges if needs[1] else None, grad_nodes, grad_values


# Draws ---------------------------------------------------------------------------------------


def sample_paths(chain: Chain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T K)."""
    chain, uniform = _ready(chain), uniform.contiguous()
    path = uniform.new_empty(uniform.shape, dtype=torch.long)
    noise, made = pointers(uniform, path)
    draws = library.DrawArguments(len(uniform), noise, None, None, 0, 0, None, made)
    call("sample_paths", chain, _state(filtered), draws)
    return path


def gumbel_ffbs(chain: Chain, filtered: Filtered, gumbel: Tensor, temperature: Temperature) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K], and their relaxation. O(S N T K)."""
    chain = _ready(chain)
    return _relaxed_backtrack(chain, _state(filtered), None, gumbel, temperature)


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
    chain: Chain,
    state: library.ctypes.Structure,
    prefix: Tensor | None,
    noise: Tensor | None,
    temperature: Temperature,
) -> Draw:
    """Choose by log weights of prefixes [N, T, K], those of the state or others.

    With noise [S, N, T, K] or (S = 1) without.
    """
    shape = (1, *chain.emissions.shape) if noise is None else noise.shape
    noise = _like(noise, chain.emissions)
    soft = chain.emissions.new_empty(shape)
    draw = Draw(soft, soft.new_empty(shape[:3], dtype=torch.long))
    temperatures = library.Temperatures(temperature, draw.path.shape[:2])
    call("relaxed_backtrack", chain, state, _draws(draw, temperatures, noise, prefix))
    return draw


def _draws(
    draw: Draw,
    temperatures: library.Temperatures,
    noise: Tensor | None = None,
    prefix: Tensor | None = None,
) -> library.ctypes.Structure:
    inputs, outputs = pointers(noise, prefix), pointers(*draw)
    return library.DrawArguments(len(draw.soft), *inputs, *temperatures.place, *outputs)


def _through_softmax(
    chain: Chain, draw: Draw, temperature: Temperature, grad: Tensor, needs: Needs
) -> tuple[Tensor, Tensor | None]:
    """From the gradient of relaxed draws to those of prefixes and of the transitions taken."""
    grad = grad.contiguous()
    temperatures = library.Temperatures(temperature, draw.path.shape[:2])
    grad_prefix, grad_edges = torch.empty_like(chain.emissions), _room_for_edges(chain, needs[1])
    pulled = library.SoftGradArguments(*pointers(grad, grad_prefix, grad_edges))
    call("relaxed_backtrack_adjoint", chain, _draws(draw, temperatures), pulled)
    return grad_prefix, grad_edges


# Given paths ---------------------------------------------------------------------------------


def path_scores(chain: Chain, paths: Tensor) -> Tensor:
    """[S, N] float64, of paths [S, N, T]: 0 if the chain is empty, -inf if none. O(S N T)."""
    chain, paths = _ready(chain), paths.contiguous()
    scores = torch.empty(paths.shape[:2], dtype=torch.float64, device=CPU)
    given = pointers(paths, scores, None, None, None)
    call("path_scores", chain, library.PathArguments(len(paths), *given))
    return scores


def path_scores_adjoint(chain: Chain, paths: Tensor, grad: Tensor, needs: Needs) -> Grads:
    """Each step of a path [S, N, T] gets the gradient [S, N] of its path. O(S N T)."""
    chain, paths = _ready(chain), paths.contiguous()
    gradient = _like(grad, chain.emissions)
    grad_emissions = torch.empty_like(chain.emissions) if needs[0] else None
    grad_edges = _room_for_edges(chain, needs[1])
    given = pointers(paths, None, gradient, grad_emissions, grad_edges)
    call("path_scores_adjoint", chain, library.PathArguments(len(paths), *given))
    return grad_emissions, grad_edges


# Best paths ----------------------------------------------------------------------------------


def viterbi(chain: Chain) -> Best:
    """The best path [N, T] and its score [N]. O(N T K^2)."""
    return _viterbi(_ready(chain), None)[0]


def _viterbi(chain: Chain, came_from: Tensor | None) -> tuple[Best, Tensor]:
    """The best path, and the best scores up to each state [N, T, K]; fills in where from."""
    emissions = chain.emissions
    path = emissions.new_empty(emissions.shape[:2], dtype=torch.long)
    best = Best(path, emissions.new_empty(len(emissions), dtype=torch.float64))
    prefix = emissions.new_empty(emissions.shape, dtype=torch.float64)
    call("viterbi", chain, library.BestArguments(*pointers(*best, prefix, came_from)))
    return best, prefix


def relaxed_viterbi(chain: Chain, temperature: Temperature) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and where each best score comes from. O(N T K^2)."""
    chain = _ready(chain)
    came_from = chain.emissions.new_empty(chain.emissions.shape, dtype=torch.int32)
    _, prefix = _viterbi(chain, came_from)
    no_state = library.StateArguments()
    return _relaxed_backtrack(chain, no_state, prefix, None, temperature), came_from


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
    grad_prefix, grad_edges = _through_softmax(chain, draw, temperature, grad, needs)
    pulled = library.PrefixGradArguments(*pointers(came_from, grad_prefix, grad_edges))
    call("prefix_adjoint", chain, pulled)
    return grad_prefix, grad_edges, grad_of_temperature(draw, temperature, grad, needs)
