"""`gradcheck` and `gradgradcheck`: every gradient against finite differences, in float64.

Samplers are checked with frozen noise: a fresh generator with the same seed at each call.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from tests.quantities import PAIR_QUANTITIES
from tests.structures.registry import over
from tests.structures.structure import Ask, BaseExample, Structure, seeded

IN_FULL = ("log_partition", "marginals", "entropy")  # the others along a random direction
TWICE = {name: name for name in ("log_partition", "mean", "entropy")}


def as_function(example: BaseExample, ask: Ask) -> Callable[..., Tensor]:
    """`ask` as a function of the example's scores."""
    return lambda *scores: ask(example.with_scores(*scores).crf())


def leaves(example: BaseExample) -> tuple[Tensor, ...]:
    return tuple(example.leaves().scores.values())


@over(example="small", quantity="checked_quantities")
def test_gradcheck(structure: Structure, example: BaseExample, quantity: str):
    fast = quantity not in IN_FULL
    function = as_function(example, structure.quantities[quantity])
    assert gradcheck(function, leaves(example), fast_mode=fast)


@over(example="small", ask=PAIR_QUANTITIES)
def test_pair_gradcheck(example: BaseExample, ask: Callable):
    other, count = example.rescored(), len(example.scores)

    def divergence(*scores: Tensor) -> Tensor:
        p, q = example.with_scores(*scores[:count]), other.with_scores(*scores[count:])
        return ask(p.crf(), q.crf())

    assert gradcheck(divergence, leaves(example) + leaves(other), fast_mode=True)


@over(example="small", quantity=TWICE)
def test_gradgradcheck(structure: Structure, example: BaseExample, quantity: str):
    function = as_function(example, structure.quantities[quantity])
    assert gradgradcheck(function, leaves(example), fast_mode=True)


@pytest.mark.slow
@over(example="small", quantity=TWICE)
def test_gradgradcheck_in_full(structure: Structure, example: BaseExample, quantity: str):
    assert gradgradcheck(as_function(example, structure.quantities[quantity]), leaves(example))


@over(example="small", temperature=[0.5, 2.0])
def test_rsample_gradcheck_with_frozen_noise(example: BaseExample, temperature: float):
    def draw(crf: Any) -> Tensor:
        return crf.rsample(temperature=temperature, generator=seeded(6))

    assert gradcheck(as_function(example, draw), leaves(example))


@over(example="small", draw="relaxations")
def test_relaxations_gradcheck_with_frozen_noise(example: BaseExample, draw: Callable):
    def drawn(crf: Any) -> Tensor:
        return draw(crf, (2,), generator=seeded(7))

    assert gradcheck(as_function(example, drawn), leaves(example), fast_mode=True)


@over(example="small")
def test_rsample_gradcheck_by_its_temperature(example: BaseExample):
    """One for each draw of each structure."""
    crf = example.crf()
    temperature = torch.rand(2, *crf.batch_shape, generator=seeded(5), dtype=torch.float64) + 0.3

    def draw(temperature: Tensor) -> Tensor:
        return crf.rsample((2,), temperature=temperature, generator=seeded(6))

    assert gradcheck(draw, (temperature.requires_grad_(),))
