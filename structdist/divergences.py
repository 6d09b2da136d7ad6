"""Cross-entropy, Kullback-Leibler divergence and Rényi entropies, for every structure.

All of them reduce to log Z and to expectations of values on parts. Scores that either distribution
forbids count 0 in those expectations; whether a forbidden score matters is decided on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from structdist import ops
from structdist.checks import require_number
from structdist.ops.finite import LARGEST_SCORE

if TYPE_CHECKING:
    from structdist.base import StructuredDistribution

LARGEST_ORDER = 1e15  # above, the entropy is that of the mode to the last digit


def cross_entropy(p: StructuredDistribution, q: StructuredDistribution) -> Tensor:
    """[*B]: -E_p[log q] = log Z_q - E_p[score_q]."""
    p, q = _over_one_batch(p, q)
    p_problem, q_problem = p._problem(), q._problem()
    values = [torch.where(x == -torch.inf, 0.0, ops.bounded_scores(x)) for x in q_problem.scores]
    mean_score = ops.expectation(p_problem, p._forward(p_problem), values, exact=True)
    log_z = ops.log_partition(q_problem, q._forward(q_problem), exact=True)
    return _finish(log_z - mean_score, p, p_problem, q_problem)


def kl(p: StructuredDistribution, q: StructuredDistribution) -> Tensor:
    """[*B]: E_p[score_p - score_q] + log Z_q - log Z_p, in which like scores cancel first."""
    p, q = _over_one_batch(p, q)
    p_problem, q_problem = p._problem(), q._problem()
    wide, q_scores = p_problem.with_values(q_problem.scores)
    gaps = [_difference(left, right) for left, right in zip(wide.scores, q_scores, strict=True)]
    gap = ops.expectation(p_problem, p._forward(p_problem), gaps, exact=True)
    p_log_z = ops.log_partition(p_problem, p._forward(p_problem), exact=True)
    q_log_z = ops.log_partition(q_problem, q._forward(q_problem), exact=True)
    return _finish(gap + q_log_z - p_log_z, p, p_problem, q_problem)


def renyi_entropy(p: StructuredDistribution, order: float) -> Tensor:
    """[*B]: log of the sum of p(z)^order over all paths, divided by 1 - order, and its limits."""
    order = require_number("order", order)
    if not order >= 0:  # NaN included
        raise ValueError(f"order must not be negative, got {order}")
    if order == 1:
        return p.entropy()
    problem = p._problem()
    forward = p._forward(problem)
    log_count = _log_sum(_allowed(problem)).clamp(min=0)
    if order == 0:
        return _rounded(p, log_count)
    if order > LARGEST_ORDER:
        best = ops.viterbi(problem).path
        found = -ops.log_prob(problem, forward, best[None])[0].double()
    else:
        # Float64, since near order 1 a small difference is divided by a small number.
        log_z, log_sum = (_log_sum(_tempered(problem, order, power)) for power in (1.0, order))
        log_z = torch.where(log_z > -torch.inf, log_z, 0.0)
        found = (torch.where(log_sum > -torch.inf, log_sum, 0.0) - order * log_z) / (1 - order)
    return _rounded(p, _within(found, log_count))


def _log_sum(problem: ops.Problem) -> Tensor:
    return ops.log_partition(problem, ops.run_forward(problem), exact=True)


def _tempered(problem: ops.Problem, order: float, power: float) -> ops.Problem:
    """Every score times a power, in float64, with the same bounds for both powers."""
    limit = LARGEST_SCORE / max(order, 1.0)

    def scaled(x: Tensor) -> Tensor:
        x = x.double()
        return torch.where(x == -torch.inf, x, x.clamp(-limit, limit) * power)

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
    hidden = p.lengths.is_meta or torch.compiler.is_compiling()
    if not hidden and not torch.equal(p.lengths, q.lengths):
        raise ValueError(
            "other has chains of other lengths, hence over other paths: "
            "make both with the same lengths=..."
        )
    return p, q


def _difference(left: Tensor, right: Tensor) -> Tensor:
    forbidden = (left == -torch.inf) | (right == -torch.inf)
    limit = torch.finfo(left.dtype).max
    gap = torch.where(forbidden, 0.0, ops.bounded_scores(left) - ops.bounded_scores(right))
    return ops.bounded_scores(gap.clamp(-limit, limit))


def _within(x: Tensor, most: Tensor | None = None) -> Tensor:
    """`x` in 0..most, where rounding took it out: far, if scores are huge. The gradient stays."""
    inside = x.clamp(min=0) if most is None else x.clamp(min=0).minimum(most)
    finite = torch.where(x.isfinite(), x, 0.0)
    return torch.where(x == inside, x, inside.detach() + (finite - finite.detach()))


def _allowed(problem: ops.Problem) -> ops.Problem:
    """The same paths allowed, all with score 0."""
    return problem.with_scores(
        [torch.where(x == -torch.inf, x, 0.0).detach() for x in problem.scores]
    )


def _finish(
    divergence: Tensor, p: StructuredDistribution, p_problem: ops.Problem, q_problem: ops.Problem
) -> Tensor:
    """[*B]: 0 where p allows nothing, inf where there is a path that p allows and q forbids."""
    log_z = ops.log_partition(p_problem, p._forward(p_problem), exact=True).detach()
    divergence = torch.where(log_z == -torch.inf, 0.0, _within(divergence))
    return _rounded(p, _infinite_where_escaping(divergence, p, p_problem, q_problem))


def _infinite_where_escaping(
    divergence: Tensor, p: StructuredDistribution, p_problem: ops.Problem, q_problem: ops.Problem
) -> Tensor:
    """Every part that q forbids scores 1, every other 0: does the best path that p allows score?"""
    forbidden = [x == -torch.inf for x in q_problem.scores]
    if ops.numbers_are_hidden() or p.lengths.is_meta or any(bool(x.any()) for x in forbidden):
        ones = [x.to(q_problem.scores[0].dtype) for x in forbidden]
        allowed, counts = _allowed(p_problem).with_values(ones)
        pairs = zip(allowed.scores, counts, strict=True)
        escaping = allowed.with_scores([score + count for score, count in pairs])
        divergence = torch.where(ops.viterbi(escaping).score > 0, torch.inf, divergence)
    return divergence


def _rounded(p: StructuredDistribution, x: Tensor) -> Tensor:
    """[N] float64 as [*B] in the dtype of the distribution."""
    return p._per_structure(ops.rounded(x, p._parameters.dtype))
