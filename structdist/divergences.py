"""Cross-entropy, Kullback-Leibler divergence and Rényi entropies, for every structure.

All of them reduce to log Z and to expectations of values on parts. Scores that either distribution
forbids count 0 in those expectations; whether a forbidden score matters is decided on its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from structdist import ops
from structdist.checks import require_number

if TYPE_CHECKING:
    from structdist.base import StructuredDistribution


def cross_entropy(p: StructuredDistribution, q: StructuredDistribution) -> Tensor:
    """[*B]: -E_p[log q] = log Z_q - E_p[score_q]."""
    p, q = _over_one_batch(p, q)
    p_problem, q_problem = p._problem(), q._problem()
    values = [torch.where(x == -torch.inf, 0.0, ops.bounded_scores(x)) for x in q_problem.scores]
    mean_score = ops.expectation(p_problem, p._forward(p_problem), values, exact=True)
    log_z = ops.log_partition(q_problem, q._forward(q_problem), exact=True)
    return _infinite_where_escaping(log_z - mean_score, p, p_problem, q_problem)


def kl(p: StructuredDistribution, q: StructuredDistribution) -> Tensor:
    """[*B]: E_p[score_p - score_q] + log Z_q - log Z_p, in which like scores cancel first."""
    p, q = _over_one_batch(p, q)
    p_problem, q_problem = p._problem(), q._problem()
    wide, q_scores = p_problem.with_values(q_problem.scores)
    gaps = [_difference(left, right) for left, right in zip(wide.scores, q_scores, strict=True)]
    gap = ops.expectation(p_problem, p._forward(p_problem), gaps, exact=True)
    p_log_z = ops.log_partition(p_problem, p._forward(p_problem), exact=True)
    q_log_z = ops.log_partition(q_problem, q._forward(q_problem), exact=True)
    return _infinite_where_escaping(gap + q_log_z - p_log_z, p, p_problem, q_problem)


def renyi_entropy(p: StructuredDistribution, order: float) -> Tensor:
    """[*B]: log of the sum of p(z)^order over all paths, divided by 1 - order, and its limits."""
    order = require_number("order", order)
    if not order >= 0:  # NaN included
        raise ValueError(f"order must not be negative, got {order}")
    if order == 1:
        return p.entropy()
    problem = p._problem()
    forward = p._forward(problem)
    if math.isinf(order):
        best = ops.viterbi(problem).path
        return p._per_structure(-ops.log_prob(problem, forward, best[None])[0])
    if order == 0:
        return _rounded(p, _log_sum(_allowed(problem)))
    # Float64, since near order 1 a small difference is divided by a small number.
    log_z, log_sum = (_log_sum(_tempered(problem, power)) for power in (1.0, order))
    possible = log_z > -torch.inf
    log_z = torch.where(possible, log_z, 0.0)
    return _rounded(p, torch.where(possible, log_sum - order * log_z, 0.0) / (1 - order))


def _log_sum(problem: ops.Problem) -> Tensor:
    return ops.log_partition(problem, ops.run_forward(problem), exact=True)


def _tempered(problem: ops.Problem, power: float) -> ops.Problem:
    """Every score times a power, in float64."""

    def scaled(x: Tensor) -> Tensor:
        return ops.bounded_scores(ops.bounded_scores(x.double()) * power)

    return problem.with_scores([scaled(x) for x in problem.scores])


def _over_one_batch(
    p: StructuredDistribution, q: StructuredDistribution
) -> tuple[StructuredDistribution, StructuredDistribution]:
    kind = type(p._parameters)
    if not isinstance(getattr(q, "_parameters", None), kind):
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
    if not p.lengths.is_meta and not torch.equal(p.lengths, q.lengths):
        raise ValueError(
            "other has chains of other lengths, hence over other paths: "
            "make both with the same lengths=..."
        )
    return p, q


def _difference(left: Tensor, right: Tensor) -> Tensor:
    forbidden = (left == -torch.inf) | (right == -torch.inf)
    limit = torch.finfo(left.dtype).max
    return torch.where(forbidden, 0.0, left - right).clamp(-limit, limit)


def _allowed(problem: ops.Problem) -> ops.Problem:
    """The same paths allowed, all with score 0."""
    return problem.with_scores(
        [torch.where(x == -torch.inf, x, 0.0).detach() for x in problem.scores]
    )


def _infinite_where_escaping(
    divergence: Tensor, p: StructuredDistribution, p_problem: ops.Problem, q_problem: ops.Problem
) -> Tensor:
    """[*B]: inf where there is a path that p allows and q forbids.

    Every part that q forbids scores 1, every other 0: does the best path that p allows score?
    """
    forbidden = [x == -torch.inf for x in q_problem.scores]
    if ops.transforming() or p.lengths.is_meta or any(bool(x.any()) for x in forbidden):
        ones = [x.to(q_problem.scores[0].dtype) for x in forbidden]
        allowed, counts = _allowed(p_problem).with_values(ones)
        pairs = zip(allowed.scores, counts, strict=True)
        escaping = allowed.with_scores([score + count for score, count in pairs])
        best = ops.viterbi(escaping).score
        divergence = torch.where(best == -torch.inf, 0.0, divergence)  # p allows nothing
        divergence = torch.where(best > 0, torch.inf, divergence)
    return _rounded(p, divergence)


def _rounded(p: StructuredDistribution, x: Tensor) -> Tensor:
    """[N] float64 as [*B] in the dtype of the distribution."""
    return p._per_structure(ops.rounded(x, p._parameters.like.dtype))
