"""The forward pass, and its adjoint. The equations are in csrc/filter.cpp, the compiled twin."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, full_precision, in_chain, without_padding
from structdist.ops.edges import EdgeForm, edges_at, edges_into
from structdist.ops.finite import rounded
from structdist.ops.problem import Grads, Needs
from structdist.ops.rescaled.edges import (
    TRUST,
    EdgeGrads,
    Edges,
    Underflow,
    at_last_step,
    inverse_of,
    times,
    weights_of,
)
from structdist.ops.rescaled.state import Filtered, edge_marginals


@torch.no_grad()
def filter(chain: Chain) -> tuple[Filtered, None]:
    """The forward pass. O(N T K^2) time, O(N T K) memory besides the exp of the transitions.

    Whether a chain has no path is not said: that would be one more wait for the device.
    """
    chain = without_padding(chain)
    with full_precision(chain.emissions.device):
        filtered = _filter(chain, in_log_space=False)
        if _underflows(chain, filtered):
            filtered = _filter(chain, in_log_space=True)
    return filtered, None


def _filter(chain: Chain, in_log_space: bool) -> Filtered:
    """With sums that underflow redone `in_log_space`, or (one look the less a step) left alone."""
    emissions, transitions, lengths = chain
    active = in_chain(lengths, emissions.shape[1])
    edges = Edges(transitions)
    here, norm = _normalize(emissions[:, 0].double())
    log_alpha, incoming = [here], [torch.ones_like(emissions[:, 0])]
    log_norm = [torch.where(active[:, 0], norm, 0.0)]
    for t in range(1, emissions.shape[1]):
        before = log_alpha[-1]
        q = times(weights_of(before, emissions.dtype), edges_at(edges.weight, t - 1))
        log_q = q.log().double() + edges.peak_at(t - 1)
        if in_log_space:
            log_q = _redo_underflow(log_q, q, before, transitions, t)
        here, norm = _normalize(log_q + emissions[:, t])
        going_on = active[:, t]
        log_alpha.append(torch.where(going_on[:, None], here, before))
        log_norm.append(torch.where(going_on, norm, 0.0))
        incoming.append(q)
    total = torch.logsumexp(log_alpha[-1], -1) + torch.stack(log_norm, 1).sum(1)
    log_z = torch.where(lengths > 0, total, 0.0)
    every_alpha = torch.stack(log_alpha, 1)
    weights = torch.where(active[..., None], weights_of(every_alpha, emissions.dtype), 0.0)
    return Filtered(every_alpha, weights, torch.stack(incoming, 1), log_z)


def _normalize(log_weight: Tensor) -> tuple[Tensor, Tensor]:
    norm = log_weight.amax(-1)
    return log_weight - torch.where(norm.isinf(), 0.0, norm)[:, None], norm


def _underflows(chain: Chain, filtered: Filtered) -> bool:
    """Is any sum small without being empty? (One look at the end, not one a step.)"""
    emissions, transitions, lengths = chain
    small = filtered.incoming[:, 1:] < TRUST[emissions.dtype]
    small &= in_chain(lengths, emissions.shape[1])[:, 1:, None]
    if not small.any():
        return False
    possible = (filtered.log_alpha[:, :-1] > -torch.inf).to(emissions.dtype)
    allowed = (transitions > -torch.inf).to(emissions.dtype)
    if chain.form is EdgeForm.PER_STEP:
        ways = (possible.unsqueeze(-2) @ allowed).squeeze(-2)
    else:
        ways = possible @ allowed
    return bool((small & (ways > 0)).any())


def _redo_underflow(
    log_q: Tensor, q: Tensor, before: Tensor, transitions: Tensor, t: int
) -> Tensor:
    item, state = (q < TRUST[q.dtype]).nonzero(as_tuple=True)
    logits = before[item] + edges_into(transitions, t - 1, state, item)
    return log_q.index_put((item, state), torch.logsumexp(logits, -1))


def log_partition(chain: Chain, filtered: Filtered, dtype: torch.dtype) -> Tensor:
    """[N], in float64 or rounded."""
    log_z = filtered.log_z
    return log_z.clone() if dtype == torch.float64 else rounded(log_z, dtype)


def log_partition_adjoint(chain: Chain, filtered: Filtered, grad: Tensor, needs: Needs) -> Grads:
    """Gradients of scores from that of log Z [N]. O(N T K^2)."""
    upstream = at_last_step(filtered, chain.lengths, grad)
    return filter_adjoint(chain, filtered, upstream, needs)


def marginals(chain: Chain, filtered: Filtered, part: int) -> Tensor:
    """Of nodes [N, T, K], the gradient of log Z; or of edges [N, T-1, K, K]."""
    ones = torch.ones_like(filtered.log_z)
    nodes, _ = log_partition_adjoint(chain, filtered, ones, (True, False))
    assert nodes is not None
    nodes = nodes.clamp_(max=1)  # not a rounding error more
    return edge_marginals(chain, filtered, nodes) if part else nodes


def filter_adjoint(chain: Chain, filtered: Filtered, upstream: Tensor, needs: Needs) -> Grads:
    """Gradients of scores from that of log_alpha [N, T, K]. O(N T K^2)."""
    chain = without_padding(chain)
    with full_precision(chain.emissions.device):
        return _filter_adjoint(chain, filtered, upstream, with_edges=needs[1])


def _filter_adjoint(chain: Chain, filtered: Filtered, upstream: Tensor, with_edges: bool) -> Grads:
    emissions, transitions, lengths = chain
    num_steps, dtype = emissions.shape[1], emissions.dtype
    active = in_chain(lengths, num_steps).unsqueeze(-1)
    edges, underflow = Edges(transitions), Underflow(chain, filtered)
    grad_edges = EdgeGrads(transitions) if with_edges else None
    grads = list(torch.where(active, upstream.to(dtype), 0.0).unbind(1))
    for t in reversed(range(1, num_steps)):
        p = filtered.weights[:, t - 1]
        scaled = torch.where(active[:, t], grads[t] * inverse_of(filtered.incoming[:, t]), 0.0)
        weight = edges_at(edges.weight, t - 1)
        pulled = p * times(scaled, weight.transpose(-1, -2))
        if grad_edges:
            grad_edges.add(t - 1, weight * grad_edges.outer(p, scaled))
        if underflow.any:
            n, j, w = underflow.at(t)
            columns = (w * grads[t][n, j].unsqueeze(-1)).to(dtype)
            pulled.index_add_(0, n, columns)
            if grad_edges:
                grad_edges.add_columns(t - 1, n, j, columns)
        grads[t - 1] = grads[t - 1] + pulled
    return torch.stack(grads, 1), grad_edges.total if grad_edges else None
