"""The forward pass, its adjoint and marginals: one launch a sweep (kernels/filter.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain
from structdist.ops.problem import Grads, Needs
from structdist.ops.rescaled.state import edge_marginals
from structdist.ops.triton.edge_gradients import edge_gradients
from structdist.ops.triton.state import Filtered, contiguous, is_resident, sweep


def filter(chain: Chain) -> tuple[Filtered, None]:
    """The forward pass. O(N T K^2) time, O(N T K) memory.

    Whether a chain has no path is not said: that would be a wait for the device.
    """
    chain = contiguous(chain)
    emissions = chain.emissions
    num_chains = len(emissions)
    state = Filtered(
        torch.empty_like(emissions, dtype=torch.float64),
        torch.empty_like(emissions),
        torch.empty_like(emissions),
        emissions.new_empty(num_chains, dtype=torch.float64),
        emissions.new_empty(num_chains),
        emissions.new_empty(num_chains, dtype=torch.int32),
        torch.empty_like(chain.transitions) if is_resident(chain, 1) else emissions.new_empty(0),
    )
    sweep("filter.forward", chain, [*chain, *state], matrices=1)
    return state, None


def log_partition(chain: Chain, state: Filtered, dtype: torch.dtype) -> Tensor:
    """[N], in float64 or rounded."""
    return (state.log_z if dtype == torch.float64 else state.rounded_log_z).clone()


def log_partition_adjoint(chain: Chain, state: Filtered, grad: Tensor, needs: Needs) -> Grads:
    """Gradients of scores from that of log Z [N]. O(N T K^2)."""
    return filter_adjoint(chain, state, grad, needs, from_log_z=True)


def filter_adjoint(
    chain: Chain, state: Filtered, grad: Tensor, needs: Needs, *, from_log_z: bool = False
) -> Grads:
    """Gradients of scores from that of log_alpha [N, T, K], or of log Z [N]. O(N T K^2)."""
    chain, grad = contiguous(chain), grad.contiguous()
    grad_emissions, scaled = torch.empty_like(state.weights), torch.empty_like(state.weights)
    sweep(
        "filter.adjoint",
        chain,
        [
            *(chain.transitions, state.transposed, chain.lengths),
            *(state.log_alpha, state.weights, state.incoming, state.careful),
            *(grad, grad, grad_emissions, scaled),
        ],
        matrices=1,
        FROM_LOG_Z=from_log_z,
    )
    if not needs[1]:
        return grad_emissions, None
    return grad_emissions, edge_gradients(chain, state, grad_emissions, scaled)


def marginals(chain: Chain, state: Filtered, part: int) -> Tensor:
    """Of nodes [N, T, K], the gradient of log Z; or of edges [N, T-1, K, K]."""
    ones = torch.ones_like(state.log_z)
    nodes, _ = log_partition_adjoint(chain, state, ones, (True, False))
    assert nodes is not None
    nodes = nodes.clamp_(max=1)  # not a rounding error more
    return edge_marginals(chain, state.log_alpha, nodes) if part else nodes
