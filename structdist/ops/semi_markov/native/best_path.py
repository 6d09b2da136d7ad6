"""Viterbi, relaxed too, and its adjoint, which follows the best choice before each."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.native.library import pointers
from structdist.ops.problem import Best, Draw, Grads, Needs, Temperature
from structdist.ops.semi_markov.native.arguments import (
    CPU,
    BestArguments,
    PrefixGradArguments,
    call,
    ready,
    state_of,
)
from structdist.ops.semi_markov.native.draws import labels_of, relaxed_backtrack, through_softmax
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.draws import grad_of_temperature
from structdist.ops.semi_markov.rescaled.state import Filtered


def viterbi(chain: SemiMarkovChain) -> Best:
    """The best path [N, T] and its score [N]. O(N T (K^2 + L K))."""
    chain = ready(chain)
    num_chains, num_steps, _ = chain.emissions.shape
    best = Best(
        torch.zeros(num_chains, num_steps, dtype=torch.long, device=CPU),
        torch.zeros(num_chains, dtype=torch.float64, device=CPU),
    )
    prefixes = _no_prefixes(chain)
    call("segment_viterbi", chain, state_of(prefixes), BestArguments(*pointers(*best)))
    return best


def _no_prefixes(chain: SemiMarkovChain) -> Filtered:
    """Room for best prefixes, in place of those of a forward pass."""
    ends, begins = torch.zeros(2, *chain.emissions.shape, dtype=torch.float64, device=CPU)
    nothing = ends[:0]
    return Filtered(ends, begins, torch.zeros_like(ends[..., 0]), nothing, nothing, nothing)


def relaxed_viterbi(chain: SemiMarkovChain, temperature: Temperature) -> tuple[Draw, Tensor]:
    """The best path (S = 1) relaxed, and where each best score comes from [2, N, T, K]."""
    chain, emissions = ready(chain), chain.emissions
    prefixes = _no_prefixes(chain)
    came_from = torch.zeros(2, *emissions.shape, dtype=torch.long, device=CPU)
    out = BestArguments(*pointers(None, None, came_from))
    call("segment_viterbi", chain, state_of(prefixes), out)
    num_chains, num_steps, num_labels = emissions.shape
    shape = 1, num_chains, num_steps, num_labels + chain.longest
    return relaxed_backtrack(chain, prefixes, shape, None, temperature), came_from


def relaxed_viterbi_adjoint(
    chain: SemiMarkovChain,
    came_from: Tensor,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed path [1, N, T, K + L]. O(N T (K + L))."""
    chain = ready(chain)
    grad_ends, of_lengths, transitions = through_softmax(chain, draw, temperature, grad, needs)
    emissions, begins = torch.zeros_like(chain.emissions), torch.zeros_like(chain.emissions)
    segments = torch.zeros_like(chain.segments) if needs[2] else None
    labels = labels_of(draw, chain)
    known = pointers(came_from, of_lengths, labels)
    made = pointers(grad_ends, begins, emissions, transitions, segments)
    call("segment_prefix_adjoint", chain, PrefixGradArguments(*known, *made))
    of_temperature = grad_of_temperature(draw, temperature, grad, needs, chain.longest)
    return emissions, transitions, segments, of_temperature
