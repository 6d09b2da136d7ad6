"""Gradients: against autograd through the enumeration; finite, and zero where nothing may flow."""

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch.testing import assert_close

from tests.derivatives import gradients, weighted
from tests.enumeration import BatchOracle
from tests.quantities import PAIR_QUANTITIES
from tests.structures.registry import over
from tests.structures.structure import Ask, BaseExample, Structure, seeded

TWICE = {name: name for name in ("log_partition", "mean", "entropy")}
DTYPES = [torch.float64, torch.float32, torch.bfloat16]


@functools.cache
def enumerated(example: BaseExample) -> tuple[BaseExample, BatchOracle]:
    leaf = example.leaves()
    return leaf, leaf.oracle()


@over(example="examples", ask="quantities")
def test_gradient_equals_that_of_enumeration(example: BaseExample, ask: Ask):
    ours, (theirs, oracle) = example.leaves(), enumerated(example)
    assert_close(gradients(ask(ours.crf()), ours), gradients(ask(oracle), theirs))


@over(example="examples", ask=PAIR_QUANTITIES)
def test_pair_gradient_equals_that_of_enumeration(example: BaseExample, ask: Callable):
    """With respect to both arguments."""
    found = []
    for kind in ("crf", "oracle"):
        p, q = example.leaves(), example.rescored().leaves()
        answer = ask(getattr(p, kind)(), getattr(q, kind)())
        found.append(gradients(answer, p, q))
    assert_close(*found)


def slope_of_first(answer: Tensor, leaf: BaseExample) -> Tensor:
    """The gradient by the first scores, itself differentiable; 0 where no structure has steps."""
    first = next(iter(leaf.scores.values()))
    if not answer.requires_grad:
        return torch.zeros_like(first)
    (slope,) = torch.autograd.grad(answer, first, create_graph=True, allow_unused=True)
    return torch.zeros_like(first) if slope is None else slope


@over(example="examples", quantity=TWICE)
def test_second_derivative_equals_that_of_enumeration(
    structure: Structure, example: BaseExample, quantity: str
):
    """The derivative along one direction of the gradient."""
    ask, found = structure.quantities[quantity], []
    for kind in ("crf", "oracle"):
        leaf = example.leaves()
        answer = weighted(ask(getattr(leaf, kind)()))
        slope = slope_of_first(answer, leaf)
        found.append(gradients(slope, leaf))
    assert_close(*found)


@over(example="examples", draw="relaxations")
def test_straight_through_gradient_is_that_of_the_relaxation(example: BaseExample, draw: Callable):
    soft, hard = example.leaves(), example.leaves()
    relaxed = draw(soft.crf(), (3,), generator=seeded(8))
    straight = draw(hard.crf(), (3,), straight_through=True, generator=seeded(8))
    assert_close(gradients(relaxed, soft), gradients(straight, hard))


@over(example="awkward", ask="real_answers", dtype=DTYPES)
def test_gradients_are_finite_and_zero_where_nothing_may_flow(
    example: BaseExample, ask: Ask, dtype: torch.dtype
):
    leaf = example.to(dtype).leaves()
    grads = gradients(ask(leaf.crf()), leaf)
    for (name, mask), grad in zip(example.untouchable().items(), grads, strict=True):
        assert grad.dtype == dtype
        assert grad.isfinite().all(), name
        assert (grad[mask] == 0).all(), name


@over()
def test_gradient_of_log_prob_pulls_towards_the_path(structure: Structure):
    """At an allowed path: its event minus the marginals."""
    example = structure.random("pull", (5,), seed=9).leaves()
    crf = example.crf()
    first = next(iter(example.scores.values()))
    (grad,) = torch.autograd.grad(crf.log_prob(crf.argmax).sum(), first)
    assert_close(grad, crf.mode - crf.mean.detach())


@over()
def test_forbidden_path_has_no_nan_gradient(structure: Structure):
    """A path with log probability -inf still gives finite gradients elsewhere in the batch."""
    example = structure.forbid_some(structure.random("half", lengths=None, seed=10), seed=3)
    leaf = example.leaves()
    log_probs = leaf.crf().log_prob(structure.some_paths(leaf.crf()))
    assert log_probs.isinf().any()
    allowed = log_probs[log_probs > -torch.inf]
    assert all(grad.isfinite().all() for grad in gradients(allowed, leaf))
