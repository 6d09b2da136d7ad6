"""Expectations, entropies and their adjoints: one launch a sweep (kernels/expect.py)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import Chain
from structdist.ops.edges import sum_to_form
from structdist.ops.problem import Expected, Grads, Needs, Values
from structdist.ops.triton.edge_gradients import Means, edge_gradients_of_means
from structdist.ops.triton.state import Filtered, contiguous, is_resident, sweep


class _Carried(NamedTuple):
    """Values on nodes and on edges, in the dtypes that kernels want; the entropy has none."""

    nodes: Tensor | None = None  # [N, T, K] float64
    edges: Tensor | None = None  # in the form of the transitions

    @property
    def is_entropy(self) -> bool:
        return self.nodes is None

    @property
    def matrices(self) -> int:
        """Of edges, that a program has to hold: their exp, what they carry, and the values."""
        return 2 if self.edges is None else 3


def entropy(chain: Chain, state: Filtered) -> Expected:
    """In nats, with the conditional entropies of Algorithm 3 of Fu et al. O(N T K^2)."""
    return _expect(contiguous(chain), state, _Carried())


def entropy_adjoint(
    chain: Chain, state: Filtered, expected: Expected, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of the entropy [N]. O(N T K^2)."""
    return _adjoint(contiguous(chain), state, _Carried(), expected, grad, needs[1])[:2]


def expectation(chain: Chain, state: Filtered, values: Values) -> Expected:
    """Of values on nodes [N, T, K] and on edges (of any form). O(N T K^2)."""
    chain, carried = _with_values(chain, values)
    return _expect(chain, state, carried)


def expectation_adjoint(
    chain: Chain,
    state: Filtered,
    values: Values,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients of scores and values from that of the expectation [N]. O(N T K^2)."""
    wide, carried = _with_values(chain, values)
    with_edges = needs[1] or needs[3]
    found = list(_adjoint(wide, state, carried, expected, grad, with_edges))
    inputs = (*chain.scores, *values)
    for place in (1, 3):
        edges, own = found[place], inputs[place]
        found[place] = None if edges is None or own is None else sum_to_form(edges, own)
    return [x if need else None for x, need in zip(found, (True, *needs[1:]), strict=True)]


def _with_values(chain: Chain, values: Values) -> tuple[Chain, _Carried]:
    """Chains and values on their edges in one form; the state is the same in every form."""
    wide, (nodes, edges) = chain.with_values(values)
    nodes = nodes.double().contiguous()
    if values[1] is None:
        return contiguous(chain), _Carried(nodes)
    return contiguous(wide), _Carried(nodes, edges.to(chain.emissions.dtype).contiguous())


def _expect(chain: Chain, state: Filtered, carried: _Carried) -> Expected:
    expected = Expected(torch.empty_like(state.log_z), torch.empty_like(state.log_alpha))
    sweep(
        "expect.forward",
        chain,
        [
            *(chain.transitions, *_of_state(chain, state), *_values(chain, state, carried)),
            *(expected.given, expected.value),
        ],
        matrices=carried.matrices,
        **_constants(carried),
    )
    return expected


def _of_state(chain: Chain, state: Filtered) -> tuple[Tensor, ...]:
    return chain.lengths, state.log_alpha, state.weights, state.incoming, state.careful


def _values(chain: Chain, state: Filtered, carried: _Carried) -> tuple[Tensor, Tensor]:
    """Values on nodes and edges. A kernel does not look at what stands in for them."""
    nodes = state.log_alpha if carried.nodes is None else carried.nodes
    return nodes, chain.transitions if carried.edges is None else carried.edges


def _constants(carried: _Carried) -> dict[str, bool]:
    return {"ENTROPY": carried.is_entropy, "EDGE_VALUES": carried.edges is not None}


def _adjoint(
    chain: Chain,
    state: Filtered,
    carried: _Carried,
    expected: Expected,
    grad: Tensor,
    with_edges: bool,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:
    """Gradients of emissions, transitions, node values and edge values."""
    emissions, nodes, scaled, over_incoming, weighed = (
        torch.empty_like(state.weights) for _ in range(5)
    )
    transposed, values = state.transposed, _values(chain, state, carried)
    resident = is_resident(chain, carried.matrices)
    if resident and transposed.shape != chain.transitions.shape:  # grown to the form of values
        transposed = chain.transitions.mT.contiguous()
    sweep(
        "expect.adjoint",
        chain,
        [
            *(chain.transitions, transposed, *_of_state(chain, state)),
            *(*values, transposed if carried.edges is None else carried.edges.mT.contiguous()),
            *(expected.given, expected.value, grad.contiguous()),
            *(emissions, nodes, scaled, over_incoming, weighed),
        ],
        matrices=carried.matrices,
        **_constants(carried),
    )
    if not with_edges:
        return emissions, None, nodes, None
    means = Means(expected.given, expected.given, *carried, nodes, weighed, over_incoming)
    edges, edge_values = edge_gradients_of_means(chain, state, emissions, scaled, means, resident)
    return emissions, edges, nodes, edge_values
