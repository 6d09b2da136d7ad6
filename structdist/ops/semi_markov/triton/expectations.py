"""Expectations, entropies and their adjoints: one launch a sweep (kernels/segment_expect.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structdist.ops.edges import same_form, sum_to_form
from structdist.ops.problem import Expected, Grads, Needs, Values
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.triton.filtering import as_linear
from structdist.ops.semi_markov.triton.segment_gradients import SegmentGradients
from structdist.ops.semi_markov.triton.state import (
    Filtered,
    contiguous,
    moves_of,
    sweep,
    table_strides,
)
from structdist.ops.triton.edge_gradients import Means, edge_gradients_of_means


class _Carried(NamedTuple):
    """Values on steps, on moves (in the form of the transitions) and on segments (in any form)."""

    nodes: Tensor  # [N, T, K]
    edges: Tensor
    segments: Tensor

    @property
    def table(self) -> tuple[Tensor, int, int, int]:
        """Of segments, as kernels want it: with strides of chains, first steps and lengths."""
        return self.segments, *table_strides(self.segments), self.segments.stride(-2)


def entropy(chain: SemiMarkovChain, state: Filtered) -> Expected:
    """In nats, from the conditional entropies of all choices. O(N T (K^2 + L K))."""
    return _expect(contiguous(chain), state, None)


def entropy_adjoint(
    chain: SemiMarkovChain, state: Filtered, expected: Expected, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of the entropy [N]. O(N T (K^2 + L K))."""
    wanted = (*needs, False, False, False)
    return _adjoint(contiguous(chain), state, None, expected, grad, wanted)[:3]


def expectation(chain: SemiMarkovChain, state: Filtered, values: Values) -> Expected:
    """Of values on steps, moves and segments (of any form). O(N T (K^2 + L K))."""
    return _expect(*_with_values(chain, state, values))


def expectation_adjoint(
    chain: SemiMarkovChain,
    state: Filtered,
    values: Values,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients of scores and values from that of the expectation [N]."""
    found = list(_adjoint(*_with_values(chain, state, values), expected, grad, needs))
    inputs = (*chain.scores, *values)
    for place in (1, 4):
        edges, own = found[place], inputs[place]
        found[place] = None if edges is None or own is None else sum_to_form(edges, own)
    return [x if need else None for x, need in zip(found, needs, strict=True)]


def _with_values(
    chain: SemiMarkovChain, state: Filtered, values: Values
) -> tuple[SemiMarkovChain, Filtered, _Carried]:
    """Chains and values on their moves in one form; the state is the same in every form."""
    emissions, transitions, segments, lengths = chain
    nodes, edges, on_segments = values
    nodes = torch.zeros_like(emissions) if nodes is None else nodes
    edges = torch.zeros_like(transitions) if edges is None else edges
    transitions, edges = same_form(transitions, edges)
    if on_segments is None:
        on_segments = segments.new_zeros(segments.shape[-2:])
    elif on_segments.stride(-1) != 1:
        on_segments = on_segments.contiguous()
    wide = SemiMarkovChain(emissions, transitions, segments, lengths)
    return contiguous(wide), state, _Carried(nodes.contiguous(), edges.contiguous(), on_segments)


def _expect(chain: SemiMarkovChain, state: Filtered, carried: _Carried | None) -> Expected:
    """The value [N], and the means [2, N, T, K] of what ends with and begins at each step."""
    means = state.ends.new_empty(2, *state.ends.shape)
    expected = Expected(torch.empty_like(state.log_z), means)
    _sweep("forward", chain, state, carried, [*means, expected.value])
    return expected


def _adjoint(
    chain: SemiMarkovChain,
    state: Filtered,
    carried: _Carried | None,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients of emissions, transitions, segments, and of the values on each of them."""
    means = expected.given
    emissions, nodes, begins, mass = (torch.empty_like(chain.emissions) for _ in range(4))
    segments = SegmentGradients.of(chain, chain.segments if needs[2] else None)
    values = carried.segments if carried is not None and needs[5] else None
    on_segments = SegmentGradients.of(chain, values)
    _sweep(
        "adjoint",
        chain,
        state,
        carried,
        [*means, expected.value, grad.contiguous(), emissions, nodes, begins, mass],
        [*segments.arguments, *on_segments.arguments],
        SEGMENTS=needs[2],
        SEGMENT_VALUES=needs[5],
    )
    transitions = on_edges = None
    if needs[1] or needs[4]:
        edge_values = None if carried is None else carried.edges
        given = Means(means[0], means[1], None, edge_values, mass, mass, mass)
        transitions, on_edges = edge_gradients_of_means(
            moves_of(chain), as_linear(state, chain.lengths), begins, begins, given, False
        )
    return emissions, transitions, segments.summed(), nodes, on_edges, on_segments.summed()


def _sweep(
    kernel: str,
    chain: SemiMarkovChain,
    state: Filtered,
    carried: _Carried | None,
    arguments: list[Tensor],
    tables: Sequence[Any] = (),
    **constants: bool,
) -> None:
    """A kernel does not look at what stands in for the values of an entropy."""
    given = carried or _Carried(chain.emissions, chain.transitions, chain.segments)
    sweep(
        f"segment_expect.{kernel}",
        chain,
        [
            *(chain.transitions, chain.segments, chain.lengths),
            *(state.ends, state.begins, state.steps, given.nodes, given.edges),
            *(*arguments, *given.table, *tables),
        ],
        ENTROPY=carried is None,
        **constants,
    )
