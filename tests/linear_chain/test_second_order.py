"""Gradients of linear chains of which a graph is kept: long ones, and without start and end."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import FORMS, random_example
from tests.derivatives import gradients
from tests.quantities import PAIR_QUANTITIES
from tests.structures.linear_chain import QUANTITIES, LinearChains


def against_another(divergence):
    def ask(d: LinearChainCRF) -> Tensor:
        num_steps = d.event_shape[0]
        other = random_example("q", (2,), "shared", num_steps, lengths=None, seed=8)
        return divergence(d, other.crf())

    return ask


PAIRS = {name: against_another(divergence) for name, divergence in PAIR_QUANTITIES.items()}
ASKS = {**LinearChains().smooth_answers, **PAIRS}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("num_steps", [1, 4])
def test_keeping_a_graph_without_start_and_end(ask, form: str, num_steps: int):
    example = random_example("p", (2,), form, num_steps=num_steps, lengths=None, seed=7)
    kept, dropped = example.leaves(), example.leaves()
    with_graph = gradients(ask(kept.crf()), kept, create_graph=True)
    assert_close(with_graph, gradients(ask(dropped.crf()), dropped))


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
