"""Gradients: against autograd through the enumeration; finite, and zero where nothing may flow."""

import functools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import (
    EXAMPLES,
    Example,
    fill_padding,
    forbid_some,
    over_examples,
    random_example,
    seeded,
)
from tests.oracle import Oracle
from tests.quantities import PAIR_QUANTITIES, QUANTITIES, normal, rescored

over_quantities = pytest.mark.parametrize("quantity", QUANTITIES)
over_pair_quantities = pytest.mark.parametrize("quantity", PAIR_QUANTITIES)

Ask = Callable[[LinearChainCRF], Tensor]


def weighted(answer: Tensor) -> Tensor:
    """A scalar with a different weight for each entry."""
    return (answer * normal(*answer.shape, seed=17)).sum()


def gradients(answer: Tensor, *examples: Example) -> list[Tensor]:
    """With respect to every score of the examples; 0 where the answer does not depend on it."""
    scores = [x for example in examples for x in example.scores.values()]
    if not answer.requires_grad:
        return [torch.zeros_like(x) for x in scores]
    found = torch.autograd.grad(weighted(answer), scores, allow_unused=True, retain_graph=True)
    pairs = zip(scores, found, strict=True)
    return [torch.zeros_like(x) if grad is None else grad for x, grad in pairs]


@functools.cache
def enumerated(example: Example) -> tuple[Example, Oracle]:
    leaf = example.leaves()
    return leaf, leaf.oracle()


@over_quantities
@over_examples
def test_gradient_equals_that_of_enumeration(example: Example, quantity: str):
    ask, ours = QUANTITIES[quantity], example.leaves()
    theirs, oracle = enumerated(example)
    assert_close(gradients(ask(ours.crf()), ours), gradients(ask(oracle), theirs))


@over_pair_quantities
@over_examples
def test_pair_gradient_equals_that_of_enumeration(example: Example, quantity: str):
    """With respect to both arguments."""
    ask, found = PAIR_QUANTITIES[quantity], []
    for kind in ("crf", "oracle"):
        p, q = example.leaves(), rescored(example).leaves()
        answer = ask(getattr(p, kind)(), getattr(q, kind)())
        found.append(gradients(answer, p, q))
    assert_close(*found)


def slope_in_emissions(answer: Tensor, leaf: Example) -> Tensor:
    """The gradient, itself differentiable; 0 where all chains are empty."""
    if not answer.requires_grad:
        return torch.zeros_like(leaf.emissions)
    (slope,) = torch.autograd.grad(answer, leaf.emissions, create_graph=True, allow_unused=True)
    return torch.zeros_like(leaf.emissions) if slope is None else slope


@pytest.mark.parametrize("quantity", ["log_partition", "mean", "entropy"])
@over_examples
def test_second_derivative_equals_that_of_enumeration(example: Example, quantity: str):
    """The derivative along one direction of the gradient."""
    ask, found = QUANTITIES[quantity], []
    for kind in ("crf", "oracle"):
        leaf = example.leaves()
        answer = weighted(ask(getattr(leaf, kind)()))
        slope = slope_in_emissions(answer, leaf)
        found.append(gradients(slope, leaf))
    assert_close(*found)


SAMPLERS: dict[str, Ask] = {
    "rsample": lambda d: d.rsample((3,), generator=seeded(8)),
    "rsample-cold": lambda d: d.rsample((3,), temperature=0.1, generator=seeded(8)),
    "edges": lambda d: d.perturb_and_map((3,), generator=seeded(8)),
    "nodes": lambda d: d.perturb_and_map((3,), perturb="nodes", generator=seeded(8)),
}
STRAIGHT: dict[str, Ask] = {
    "rsample": lambda d: d.rsample((3,), straight_through=True, generator=seeded(8)),
    "edges": lambda d: d.perturb_and_map((3,), straight_through=True, generator=seeded(8)),
}


@pytest.mark.parametrize("sampler", STRAIGHT)
@over_examples
def test_straight_through_gradient_is_that_of_the_relaxation(example: Example, sampler: str):
    soft, hard = example.leaves(), example.leaves()
    assert_close(
        gradients(SAMPLERS[sampler](soft.crf()), soft),
        gradients(STRAIGHT[sampler](hard.crf()), hard),
    )


WITH_GRADIENT: dict[str, Ask] = {**QUANTITIES, **SAMPLERS}
AWKWARD = [e for e in EXAMPLES if "forbidden" in e.name or "nan" in e.name or "empty" in e.name]


def untouchable(example: Example) -> dict[str, Tensor]:
    """Where gradients must be 0: what is forbidden, and what stands beyond the lengths."""
    masks = {name: x == -torch.inf for name, x in example.scores.items()}
    if example.lengths is not None:
        padded = fill_padding(example, torch.nan)
        masks["emissions"] |= padded.emissions.isnan()
        masks["transitions"] |= padded.transitions.isnan()
    return masks


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("quantity", WITH_GRADIENT)
@pytest.mark.parametrize("example", AWKWARD, ids=lambda e: e.name)
def test_gradients_are_finite_and_zero_where_nothing_may_flow(
    example: Example, quantity: str, dtype: torch.dtype
):
    leaf = example.to(dtype).leaves()
    grads = gradients(WITH_GRADIENT[quantity](leaf.crf()), leaf)
    for (name, mask), grad in zip(untouchable(example).items(), grads, strict=True):
        assert grad.dtype == dtype
        assert grad.isfinite().all(), name
        assert (grad[mask] == 0).all(), name


def test_gradient_of_log_prob_pulls_towards_the_path():
    """At an allowed path: its one-hot event minus the marginals."""
    example = random_example("pull", (5,), ends=True, seed=9).leaves()
    crf = example.crf()
    path = crf.argmax
    (grad,) = torch.autograd.grad(crf.log_prob(path).sum(), example.emissions)
    assert_close(grad, crf.mode - crf.mean.detach())


def test_forbidden_path_has_no_nan_gradient():
    """A path with log probability -inf still gives finite gradients elsewhere in the batch."""
    example = forbid_some(random_example("half", (), lengths=None, ends=True, seed=10), seed=3)
    leaf = example.leaves()
    log_probs = leaf.crf().log_prob(leaf.crf().enumerate_support())
    assert log_probs.isinf().any()
    allowed = log_probs[log_probs > -torch.inf]
    assert all(grad.isfinite().all() for grad in gradients(allowed, leaf))
