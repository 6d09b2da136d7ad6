"""Cross-entropy, Kullback-Leibler divergence and Rényi entropies of linear chains.

All of them reduce to log Z and to expectations of additive functions. Scores that either chain
forbids count 0 in those expectations; whether a forbidden score matters is decided on its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from structdist import ops
from structdist.relaxation import require_number

if TYPE_CHECKING:
    from structdist.linear_chain import LinearChainCRF


def cross_entropy(p: LinearChainCRF, q: LinearChainCRF) -> Tensor:
    """[*B]: -E_p[log q] = log Z_q - E_p[score_q]."""
    p, q = _over_one_batch(p, q)
    p_chain, q_chain = p._chain(), q._chain()
    nodes, edges = (torch.where(x == -torch.inf, 0.0, x) for x in q_chain[:2])
    mean_score = ops.expectation(p_chain, nodes, edges, p._filter())
    finite = ops.log_partition(q_chain, q._filter()) - mean_score
    return p._per_chain(torch.where(_escapes(p_chain, q_chain), torch.inf, finite))


def kl(p: LinearChainCRF, q: LinearChainCRF) -> Tensor:
    """[*B]: E_p[score_p - score_q] + log Z_q - log Z_p, in which like scores cancel first."""
    p, q = _over_one_batch(p, q)
    p_chain, q_chain = p._chain(), q._chain()
    nodes = _difference(p_chain.emissions, q_chain.emissions)
    edges = _difference(*ops.same_form(p_chain.transitions, q_chain.transitions))
    gap = ops.expectation(p_chain, nodes, edges, p._filter())
    log_z = [ops.log_partition(d._chain(), d._filter()) for d in (p, q)]
    return p._per_chain(
        torch.where(_escapes(p_chain, q_chain), torch.inf, gap + log_z[1] - log_z[0])
    )


def renyi_entropy(p: LinearChainCRF, order: float) -> Tensor:
    """[*B]: log of the sum of p(z)^order over all paths, divided by 1 - order, and its limits."""
    order = require_number("order", order)
    if not order >= 0:  # NaN included
        raise ValueError(f"order must not be negative, got {order}")
    if order == 1:
        return p.entropy()
    chain, filtered = p._chain(), p._filter()
    if math.isinf(order):
        log_z = ops.log_partition(chain, filtered)
        return p._per_chain(log_z - ops.path_scores(chain, ops.viterbi(chain).path[None])[0])
    if order == 0:
        allowed = _allowed(chain)
        return p._per_chain(ops.log_partition(allowed, ops.filter(allowed)))
    # Float64, since near order 1 a small difference is divided by a small number.
    scores, lengths = [x.double() for x in chain[:2]], chain.lengths
    log_sums = []
    for power in (1.0, order):
        tempered = ops.Chain(scores[0] * power, scores[1] * power, lengths)
        log_sums.append(ops.log_partition(tempered, ops.filter(tempered)))
    return p._per_chain((log_sums[1] - order * log_sums[0]) / (1 - order))


def _over_one_batch(p: LinearChainCRF, q: LinearChainCRF) -> tuple[LinearChainCRF, LinearChainCRF]:
    if not isinstance(q, type(p)):
        raise ValueError(f"other must be a {type(p).__name__}, got {type(q).__name__}")
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"other has event shape {tuple(q.event_shape)}, expected {tuple(p.event_shape)}"
        )
    try:
        batch_shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    except RuntimeError:
        raise ValueError(
            f"other has batch shape {tuple(q.batch_shape)}, which does not broadcast with "
            f"{tuple(p.batch_shape)}"
        ) from None
    p, q = (d if d.batch_shape == batch_shape else d.expand(batch_shape) for d in (p, q))
    if not torch.equal(p.lengths, q.lengths):
        raise ValueError("other has chains of other lengths, hence over other paths")
    return p, q


def _difference(left: Tensor, right: Tensor) -> Tensor:
    forbidden = (left == -torch.inf) | (right == -torch.inf)
    return torch.where(forbidden, 0.0, left - right)


def _allowed(chain: ops.Chain) -> ops.Chain:
    """The same paths allowed, all with score 0."""
    nodes, edges = (torch.where(x == -torch.inf, x, 0.0).detach() for x in chain[:2])
    return ops.Chain(nodes, edges, chain.lengths)


def _escapes(p: ops.Chain, q: ops.Chain) -> Tensor:
    """Bool [N]: is there a path that p allows and q forbids?

    Every step that q forbids scores 1, every other 0: does the best path that p allows score?
    """
    forbidden = [(x == -torch.inf) for x in q[:2]]
    if not ops.transforming() and not any(bool(x.any()) for x in forbidden):
        return torch.zeros_like(p.lengths, dtype=torch.bool)
    nodes, edges, lengths = _allowed(p)
    edges, forbidden_edges = ops.same_form(edges, forbidden[1].to(edges.dtype))
    return ops.viterbi(ops.Chain(nodes + forbidden[0], edges + forbidden_edges, lengths)).score > 0
