"""A gradient does not depend on whether a graph of it is kept, nor on how it is asked for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import FORMS, Example, random_example, seeded
from tests.quantities import PAIR_QUANTITIES, QUANTITIES

DRAWS = {
    "rsample": lambda d: d.rsample((2,), generator=seeded(1)),
    "perturb_and_map": lambda d: d.perturb_and_map((2,), generator=seeded(1)),
}


def against_another(divergence):
    def ask(d: LinearChainCRF) -> Tensor:
        num_steps = d.event_shape[0]
        other = random_example("q", (2,), "shared", num_steps, lengths=None, seed=8)
        return divergence(d, other.crf())

    return ask


PAIRS = {name: against_another(divergence) for name, divergence in PAIR_QUANTITIES.items()}
ASKS = {k: v for k, v in {**QUANTITIES, **DRAWS, **PAIRS}.items() if k != "renyi_0"}
over_asks = pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())


def slopes(ask, example: Example, create_graph: bool) -> tuple[Tensor, ...]:
    leaf = example.leaves()
    answer = ask(leaf.crf())
    weights = torch.linspace(-1, 1, answer.numel(), dtype=answer.dtype).view(answer.shape)
    return torch.autograd.grad(
        (answer * weights).sum(),
        list(leaf.scores.values()),
        create_graph=create_graph,
        materialize_grads=True,
    )


@over_asks
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("num_steps", [1, 4])
def test_keeping_a_graph_changes_no_gradient(ask, form, num_steps):
    example = random_example("p", (2,), form, num_steps=num_steps, lengths=None, seed=7)
    assert_close(slopes(ask, example, True), slopes(ask, example, False))


def test_gradients_of_a_long_float32_chain_with_a_graph():
    """The plain twin works in float64: it does not normalise step by step."""
    generator = torch.Generator().manual_seed(0)
    emissions = torch.randn(2, 1000, 5, generator=generator).requires_grad_()
    transitions = torch.randn(5, 5, generator=generator).requires_grad_()
    for scale in (1.0, 1e3):
        for ask in ("log_partition", "entropy"):
            dist = LinearChainCRF(emissions * scale, transitions * scale)
            answer = QUANTITIES[ask](dist).sum()
            with_graph = torch.autograd.grad(answer, emissions, create_graph=True)[0]
            without = torch.autograd.grad(QUANTITIES[ask](dist).sum(), emissions)[0]
            assert_close(with_graph, without, rtol=1e-3, atol=1e-3 * scale)


@pytest.mark.parametrize("name", ["log_partition", "entropy", "marginals", "rsample"])
def test_batched_gradients(name):
    ask = ASKS[name]
    example = random_example("p", (2,), "shared", seed=7)

    def answer(emissions: Tensor) -> Tensor:
        return ask(LinearChainCRF(emissions, example.transitions)).flatten()

    one_by_one = torch.autograd.functional.jacobian(answer, example.emissions)
    at_once = torch.autograd.functional.jacobian(answer, example.emissions, vectorize=True)
    assert_close(at_once, one_by_one)
