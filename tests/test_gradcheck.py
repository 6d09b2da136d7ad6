"""`gradcheck` and `gradgradcheck`: every gradient against finite differences, in float64.

Samplers are checked with frozen noise: a fresh generator with the same seed at each call.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from structdist import LinearChainCRF
from tests.chains import FORMS, Example, fill_padding, forbid_some, random_example, seeded
from tests.quantities import PAIR_QUANTITIES, QUANTITIES, normal, rescored


def _small(form: str, *, ends: bool = True) -> Example:
    name = f"{form}-ends{ends:d}"
    return random_example(name, (4,), form, num_steps=3, num_states=2, ends=ends, seed=3)


def _forbidden(form: str) -> Example:
    plain = random_example(f"{form}-forbidden", (2,), form, num_steps=3, ends=True, seed=4)
    return fill_padding(forbid_some(plain, seed=5), torch.nan)


SMALL = [_small("shared", ends=False), *map(_small, FORMS), *map(_forbidden, FORMS)]
over_small = pytest.mark.parametrize("example", SMALL, ids=lambda e: e.name)
IN_FULL = ("log_partition", "marginals", "entropy")  # the others along a random direction
DIFFERENTIABLE = [name for name in QUANTITIES if name not in ("renyi_0", "renyi_1", "mean")]

Ask = Callable[[LinearChainCRF], Tensor]


def as_function(example: Example, ask: Ask) -> Callable[..., Tensor]:
    """`ask` as a function of the example's scores."""
    return lambda *scores: ask(example.with_scores(*scores).crf())


def leaves(example: Example) -> tuple[Tensor, ...]:
    return tuple(example.leaves().scores.values())


@pytest.mark.parametrize("quantity", DIFFERENTIABLE)
@over_small
def test_gradcheck(example: Example, quantity: str):
    fast = quantity not in IN_FULL
    assert gradcheck(as_function(example, QUANTITIES[quantity]), leaves(example), fast_mode=fast)


@pytest.mark.parametrize("quantity", PAIR_QUANTITIES)
@over_small
def test_pair_gradcheck(example: Example, quantity: str):
    other, count = rescored(example), len(example.scores)

    def divergence(*scores: Tensor) -> Tensor:
        p, q = example.with_scores(*scores[:count]), other.with_scores(*scores[count:])
        return PAIR_QUANTITIES[quantity](p.crf(), q.crf())

    assert gradcheck(divergence, leaves(example) + leaves(other), fast_mode=True)


@pytest.mark.parametrize("quantity", ["log_partition", "mean", "entropy"])
@over_small
def test_gradgradcheck(example: Example, quantity: str):
    assert gradgradcheck(as_function(example, QUANTITIES[quantity]), leaves(example))


@over_small
def test_expectation_gradcheck_in_its_values(example: Example):
    num_steps, num_states = example.emissions.shape[-2:]
    nodes = normal(len(example.lengths), num_steps, num_states).requires_grad_()
    edges = normal(num_states, num_states, seed=1).requires_grad_()
    step_edges = normal(len(example.lengths), num_steps - 1, num_states, num_states)
    crf = example.crf()
    assert gradcheck(crf.expectation, (nodes, edges))
    assert gradcheck(crf.expectation, (nodes, step_edges.requires_grad_()))


@pytest.mark.parametrize("temperature", [0.5, 2.0])
@over_small
def test_rsample_gradcheck_with_frozen_noise(example: Example, temperature: float):
    def draw(crf: LinearChainCRF) -> Tensor:
        return crf.rsample(temperature=temperature, generator=seeded(6))

    assert gradcheck(as_function(example, draw), leaves(example))


@pytest.mark.parametrize("perturb", ["edges", "nodes"])
@over_small
def test_perturb_and_map_gradcheck_with_frozen_noise(example: Example, perturb: str):
    def draw(crf: LinearChainCRF) -> Tensor:
        return crf.perturb_and_map((2,), perturb=perturb, generator=seeded(7))

    assert gradcheck(as_function(example, draw), leaves(example), fast_mode=True)
