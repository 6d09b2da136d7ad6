"""The forward pass, its adjoint, and marginals."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.edges import EdgeForm
from structdist.ops.native.library import pointers
from structdist.ops.problem import Grads, Needs
from structdist.ops.semi_markov.native.arguments import (
    CPU,
    GradArguments,
    call,
    ready,
    state_of,
)
from structdist.ops.semi_markov.problem import FIRST_STEPS, SemiMarkovChain
from structdist.ops.semi_markov.rescaled.filtering import edge_marginals
from structdist.ops.semi_markov.rescaled.state import Filtered


def filter(chain: SemiMarkovChain) -> tuple[Filtered, bool]:
    """The forward pass, and whether a chain has no path. O(N T (K^2 + L K)) time, O(N T K) memory.

    What stands in the padding is 0, and 1 in sums over labels.
    """
    chain = ready(chain)
    emissions = chain.emissions.detach()
    num_chains, num_steps, num_labels = emissions.shape
    doubles = torch.empty(2, num_chains, num_steps, num_labels, dtype=torch.float64, device=CPU)
    norms = torch.empty(num_chains, num_steps, dtype=torch.float64, device=CPU)
    weights, incoming = torch.empty_like(emissions), torch.empty_like(emissions)
    log_z = torch.empty(num_chains, dtype=torch.float64, device=CPU)
    filtered = Filtered(doubles[0], doubles[1], norms, weights, incoming, log_z)
    call("segment_filter", chain, state_of(filtered))
    return filtered, bool((log_z == -torch.inf).any())


def filter_adjoint(
    chain: SemiMarkovChain,
    filtered: Filtered,
    upstream: Tensor | None,
    grad_log_z: Tensor | None,
    needs: Needs,
    single: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor]:
    """Gradients of scores and of `begins` from those of `ends` [N, T, K] and of log Z [N].

    `single` are gradients of segments by last step and length [S, N, T, L], and their labels.
    """
    chain = ready(chain)
    of_lengths, labels = (None, None) if single is None else single
    emissions, begins = torch.empty_like(chain.emissions), torch.empty_like(chain.emissions)
    transitions = torch.zeros_like(chain.transitions) if needs[1] else None
    segments = torch.zeros_like(chain.segments) if needs[2] else None
    if grad_log_z is not None:
        grad_log_z = grad_log_z.to(emissions.dtype).contiguous()
    arguments = GradArguments(
        *pointers(upstream, grad_log_z),
        0 if of_lengths is None else len(of_lengths),
        *pointers(of_lengths, labels, emissions, begins, transitions, segments),
    )
    call("segment_filter_adjoint", chain, state_of(filtered), arguments)
    return emissions, transitions, segments, begins


def log_partition_adjoint(
    chain: SemiMarkovChain, filtered: Filtered, grad: Tensor, needs: Needs
) -> Grads:
    """Gradients of scores from that of log Z [N]. O(N T (K^2 + L K))."""
    return filter_adjoint(chain, filtered, None, grad, needs)[:3]


def marginals(chain: SemiMarkovChain, filtered: Filtered, part: int) -> Tensor:
    """Of labels, moves, segments or first steps; see the reference."""
    if part == 2:
        num_chains, num_steps, num_labels = chain.emissions.shape
        shape = num_chains, num_steps, chain.longest, num_labels
        segments = chain.segments
        if EdgeForm.of(segments) is EdgeForm.PER_CHAIN:
            segments = segments.unsqueeze(1)
        chain = chain.with_scores([chain.emissions, chain.transitions, segments.expand(shape)])
    ones, needs = torch.ones_like(filtered.log_z), (False, False, part == 2)
    emissions, _, by_size, begins = filter_adjoint(chain, filtered, None, ones, needs)
    if part == 1:
        return edge_marginals(chain, filtered, begins)
    found = begins if part == FIRST_STEPS else emissions
    return (found if by_size is None else by_size).clamp_(max=1)  # not a rounding error more
