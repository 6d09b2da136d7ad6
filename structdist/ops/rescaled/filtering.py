"""The forward pass, and its adjoint. The equations are in csrc/filter.cpp, the compiled twin."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.chain import Chain, full_precision, transitions_without_padding
from structdist.ops.edges import edges_into
from structdist.ops.finite import TRUST, bounded_scores, rounded
from structdist.ops.problem import Grads, Needs
from structdist.ops.rescaled.conditionals import Conditionals
from structdist.ops.rescaled.edges import Edges
from structdist.ops.rescaled.state import (
    Filtered,
    active_steps,
    at_last_step,
    edge_marginals,
    finite_or_zero,
    last_step,
)


@torch.no_grad()
def filter(chain: Chain) -> tuple[Filtered, None]:
    """The forward pass. O(N T K^2) time, O(N T K) memory besides the exp of the transitions.

    The host looks at the device once, to see whether any sum is small. Where one is, a second look
    tells sums that underflowed from those that are empty, since something is forbidden. The state
    says what was found, so that nothing that is asked about it afterwards has to look. Whether a
    chain has no path is not said: that would be one more wait for the device.
    """
    with full_precision(chain.emissions.device):
        edges = Edges(transitions_without_padding(chain))
        filtered, norm = _filter(chain, edges)
        trust = TRUST[norm.dtype] / norm[:-1].clamp(max=1)  # what was lost was lost before this
        lost = norm <= TRUST[norm.dtype]  # the weights of a step: none is left to be divided
        any_small = _any_small(filtered, trust, lost, chain.lengths)
        if any_small and _any_underflow(chain, edges, filtered, trust, lost):
            filtered = _filter_in_log_space(chain, edges)
    return filtered, None


def _filter(chain: Chain, edges: Edges) -> tuple[Filtered, Tensor]:
    """The state, and by what each step was divided [T, N, 1]."""
    scores = _scores_of_steps(chain, edges)
    shift = finite_or_zero(scores.amax(-1, keepdim=True))
    weights = scores.sub_(shift).to(chain.emissions.dtype).exp_()
    incoming, norm = torch.empty_like(weights), torch.empty_like(shift, dtype=weights.dtype)
    incoming[0].fill_(1.0)
    norm[0].fill_(1.0)
    p, q, largest = edges.rows(weights), edges.rows(incoming), edges.rows(norm)
    least, product = torch.finfo(weights.dtype).tiny, edges.product
    for t, matrix in enumerate(edges.matrices(len(p) - 1), 1):
        product(p[t - 1], matrix, out=q[t])
        p[t].mul_(q[t])
        torch.amax(p[t], -1, keepdim=True, out=largest[t]).clamp_(min=least)
        p[t].div_(largest[t])
    log_norm = norm.to(torch.float64, copy=True).log_().add_(shift)
    log_total = last_step(weights, chain.lengths).double().sum(-1).log()
    log_z = _log_z(log_total, log_norm, chain.lengths)
    return Filtered(weights, incoming, log_norm, log_z, None), norm


def _scores_of_steps(chain: Chain, edges: Edges) -> Tensor:
    """[T, N, K] float64: emissions and, but for the first step, the peaks of the columns."""
    emissions = bounded_scores(chain.emissions).transpose(0, 1)
    scores = torch.empty(emissions.shape, dtype=torch.float64, device=emissions.device)
    scores.copy_(emissions)[1:].add_(edges.peak)
    return scores.masked_fill_(~active_steps(chain.lengths, len(scores)), -torch.inf)


def _log_z(log_total: Tensor, log_norm: Tensor, lengths: Tensor) -> Tensor:
    """[N], from the log of the sum of each chain's last weights and what steps were divided by."""
    log_z = log_total + torch.where(active_steps(lengths, len(log_norm)), log_norm, 0.0).sum((0, 2))
    return torch.where(lengths > 0, log_z, 0.0)


def _any_small(filtered: Filtered, trust: Tensor, lost: Tensor, lengths: Tensor) -> bool:
    """Is any sum too small to trust, or are all weights of a step?"""
    small = (filtered.incoming[1:].amin(-1, keepdim=True) <= trust) | lost[1:]
    return bool((small & active_steps(lengths, len(filtered.incoming))[1:]).any())


def _any_underflow(
    chain: Chain, edges: Edges, filtered: Filtered, trust: Tensor, lost: Tensor
) -> bool:
    """Is any of the small sums not empty, or any step whose weights are lost possible?"""
    incoming, emissions = filtered.incoming, chain.emissions.transpose(0, 1)
    possible = (incoming > 0) & (emissions > -torch.inf)
    allowed = (edges.scores > -torch.inf).to(incoming.dtype)
    ways = edges.products(possible[:-1].to(incoming.dtype), allowed)
    small = ((incoming[1:] <= trust) & (ways > 0)) | (lost[1:] & possible[1:])
    return bool((small & active_steps(chain.lengths, len(incoming))[1:]).any())


def _filter_in_log_space(chain: Chain, edges: Edges) -> Filtered:
    """The same in float64 logs, with sums that underflow as log-sum-exp: a few looks a step."""
    emissions, dtype = bounded_scores(chain.emissions), chain.emissions.dtype
    scores, active = _scores_of_steps(chain, edges), active_steps(chain.lengths, emissions.shape[1])
    weights = torch.empty_like(scores, dtype=dtype)
    log_alpha, incoming = torch.empty_like(scores), torch.ones_like(weights)
    log_norm = torch.empty_like(scores[..., :1])
    p, q, matrices = edges.rows(weights), edges.rows(incoming), edges.matrices(len(scores) - 1)
    for t, here in enumerate(scores):
        if t > 0:
            edges.product(p[t - 1], matrices[t - 1], out=q[t])
            here += incoming[t].log()
            small = (incoming[t] <= TRUST[dtype]) & active[t]
            item, state = small.nonzero(as_tuple=True)
            logits = log_alpha[t - 1][item] + edges_into(edges.scores, t - 1, state, item)
            here[item, state] = torch.logsumexp(logits, -1) + emissions[item, t, state]
        log_norm[t] = finite_or_zero(here.amax(-1, keepdim=True))
        torch.sub(here, log_norm[t], out=log_alpha[t])
        torch.exp(log_alpha[t].to(dtype), out=weights[t])
    log_total = torch.logsumexp(last_step(log_alpha, chain.lengths), -1)
    log_z = _log_z(log_total, log_norm, chain.lengths)
    return Filtered(weights, incoming, log_norm, log_z, log_alpha)


def log_weights(chain: Chain, filtered: Filtered, edges: Edges) -> Tensor:
    """[T, N, K] float64: logs of the weights of prefixes, small ones included."""
    if filtered.log_alpha is not None:
        return filtered.log_alpha
    scores = _scores_of_steps(chain, edges)
    return scores.add_(filtered.incoming.log()).sub_(filtered.log_norm)


def log_partition(chain: Chain, filtered: Filtered, dtype: torch.dtype) -> Tensor:
    """[N], in float64 or rounded."""
    log_z = filtered.log_z
    return log_z.clone() if dtype == torch.float64 else rounded(log_z, dtype)


def log_partition_adjoint(chain: Chain, filtered: Filtered, grad: Tensor, needs: Needs) -> Grads:
    """Gradients of scores from that of log Z [N]. O(N T K^2)."""
    edges = Edges(transitions_without_padding(chain))
    return _log_partition_adjoint(chain, filtered, edges, grad, with_edges=needs[1])


def _log_partition_adjoint(
    chain: Chain, filtered: Filtered, edges: Edges, grad: Tensor, with_edges: bool
) -> tuple[Tensor, Tensor | None]:
    conditionals = Conditionals(edges, filtered, chain.lengths)
    last = (conditionals.last * grad.unsqueeze(-1)).to(filtered.weights.dtype)
    upstream = at_last_step(last, chain.lengths, len(filtered.weights))
    return _adjoint(conditionals, upstream, with_edges)


def filter_adjoint(chain: Chain, filtered: Filtered, upstream: Tensor, needs: Needs) -> Grads:
    """Gradients of scores from that of log weights [N, T, K], 0 in the padding. O(N T K^2)."""
    edges = Edges(transitions_without_padding(chain))
    conditionals = Conditionals(edges, filtered, chain.lengths)
    upstream = upstream.transpose(0, 1).to(filtered.weights.dtype).contiguous()
    return _adjoint(conditionals, upstream, with_edges=needs[1])


def _adjoint(
    conditionals: Conditionals, upstream: Tensor, with_edges: bool
) -> tuple[Tensor, Tensor | None]:
    with full_precision(upstream.device):
        swept = conditionals.sweep(upstream, with_edges=with_edges)
        grad_edges = conditionals.sum_of_moves(swept) if with_edges else None
    return swept.grad.transpose(0, 1).contiguous(), grad_edges


def marginals(chain: Chain, filtered: Filtered, part: int) -> Tensor:
    """Of nodes [N, T, K], the gradient of log Z; or of edges [N, T-1, K, K]."""
    edges, ones = Edges(transitions_without_padding(chain)), torch.ones_like(filtered.log_z)
    nodes, _ = _log_partition_adjoint(chain, filtered, edges, ones, with_edges=False)
    nodes = nodes.clamp_(max=1)  # not a rounding error more
    if part == 0:
        return nodes
    return edge_marginals(chain, log_weights(chain, filtered, edges).transpose(0, 1), nodes)
