"""Expectations of values on steps, moves and segments, entropies, and their adjoint.

The equations are in csrc/segment_expect.cpp. Values on segments are read in any form they have.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.edges import same_form, sum_to_form
from structdist.ops.finite import rounded
from structdist.ops.native.library import pointers
from structdist.ops.problem import Expected, Grads, Needs, Values
from structdist.ops.semi_markov.native.arguments import (
    CPU,
    ExpectationArguments,
    ExpectGradArguments,
    PlaceArguments,
    call,
    places_of,
    ready,
    state_of,
)
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.state import Filtered

NO_VALUES = (None, None, None)


def entropy(chain: SemiMarkovChain, filtered: Filtered) -> Expected:
    """In nats, from the conditional entropies of all choices. O(N T (K^2 + L K))."""
    return _expect(ready(chain), filtered, None)


def entropy_adjoint(
    chain: SemiMarkovChain, filtered: Filtered, expected: Expected, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of the entropy [N]. O(N T (K^2 + L K))."""
    needs = (*needs, False, False, False)
    return _expect_adjoint(ready(chain), filtered, None, expected, grad, needs)[:3]


def expectation(chain: SemiMarkovChain, filtered: Filtered, values: Values) -> Expected:
    """Of values on steps, moves and segments (of any form). O(N T (K^2 + L K))."""
    chain, values = _with_values(chain, values)
    return _expect(chain, filtered, values)


def expectation_adjoint(
    chain: SemiMarkovChain,
    filtered: Filtered,
    values: Values,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients of scores and values from that of the expectation [N]. O(N T (K^2 + L K))."""
    wide, given = _with_values(chain, values)
    found = list(_expect_adjoint(wide, filtered, given, expected, grad, needs))
    for place, own in ((1, chain.transitions), (4, values[1])):
        of_moves = found[place]
        if of_moves is not None and own is not None:
            found[place] = sum_to_form(of_moves, own)
    return found


def _with_values(chain: SemiMarkovChain, values: Values) -> tuple[SemiMarkovChain, Values]:
    """Chains and values in the chain's dtype, those on moves in the form of the transitions."""
    steps, moves, segments = (
        None if x is None else rounded(x, chain.emissions.dtype) for x in values
    )
    if moves is not None:
        transitions, moves = same_form(chain.transitions, moves)
        chain = chain.with_scores([chain.emissions, transitions, chain.segments])
        moves = moves.contiguous()
    if segments is not None:
        segments = _with_labels_together(segments)
    return ready(chain), (None if steps is None else steps.contiguous(), moves, segments)


def _with_labels_together(segments: Tensor) -> Tensor:
    """The same values with labels next to each other; those that repeat for all lengths, once."""
    if segments.stride(-1) == 1:
        return segments
    distinct = segments[..., :1, :] if segments.stride(-2) == 0 else segments
    return distinct.contiguous().expand(segments.shape)


def _expect(chain: SemiMarkovChain, filtered: Filtered, values: Values | None) -> Expected:
    means = torch.empty(2, *chain.emissions.shape, dtype=torch.float64, device=CPU)
    value = torch.empty(len(chain.emissions), dtype=torch.float64, device=CPU)
    expected = Expected(value, means)
    call("segment_expect", chain, state_of(filtered), _arguments(values, expected))
    return expected


def _arguments(values: Values | None, expected: Expected) -> ExpectationArguments:
    steps, moves, segments = NO_VALUES if values is None else values
    ends, begins = expected.given
    return ExpectationArguments(
        values is None,
        *pointers(steps, moves, segments),
        PlaceArguments() if segments is None else places_of(segments),
        *pointers(ends, begins, expected.value),
    )


def _expect_adjoint(
    chain: SemiMarkovChain,
    filtered: Filtered,
    values: Values | None,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients of emissions, transitions, segments, and of the values on each of them."""
    emissions, transitions, segments = chain.scores
    steps, moves, on_segments = NO_VALUES if values is None else values
    grad = grad.to(emissions.dtype).contiguous()
    found = [
        torch.zeros_like(emissions),
        torch.zeros_like(transitions) if needs[1] or needs[4] else None,
        torch.zeros_like(segments) if needs[2] else None,
        torch.zeros_like(steps) if needs[3] and steps is not None else None,
        torch.zeros_like(moves) if needs[4] and moves is not None else None,
        None,
    ]
    if needs[5] and on_segments is not None:
        found[5] = torch.zeros(on_segments.shape, dtype=emissions.dtype, device=CPU)
    places = PlaceArguments() if found[5] is None else places_of(found[5])
    arguments = ExpectGradArguments(*pointers(grad, *found), places)
    call(
        "segment_expect_adjoint",
        chain,
        state_of(filtered),
        _arguments(values, expected),
        arguments,
    )
    return [x if need else None for x, need in zip(found, needs, strict=True)]
