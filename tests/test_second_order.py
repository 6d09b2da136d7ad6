"""A gradient does not depend on whether a graph of it is kept, nor on how it is asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from tests.derivatives import gradients
from tests.quantities import PAIR_QUANTITIES
from tests.structures.registry import over
from tests.structures.structure import Ask, BaseExample, Structure

NUM_STEPS = [1, 4]
BATCHED = {name: name for name in ("log_partition", "entropy", "marginals", "rsample")}


def slopes(ask: Ask, example: BaseExample, create_graph: bool) -> tuple[Tensor, ...]:
    leaf = example.leaves()
    return gradients(ask(leaf.crf()), leaf, create_graph=create_graph)


@over(form="forms", num_steps=NUM_STEPS, ask="smooth_answers")
def test_keeping_a_graph_changes_no_gradient(
    structure: Structure, form: str, num_steps: int, ask: Ask
):
    example = structure.random("p", (2,), form, num_steps=num_steps, lengths=None, seed=7)
    assert_close(slopes(ask, example, True), slopes(ask, example, False))


@over(form="forms", num_steps=NUM_STEPS, divergence=PAIR_QUANTITIES)
def test_keeping_a_graph_changes_no_gradient_of_a_divergence(
    structure: Structure, form: str, num_steps: int, divergence: Callable
):
    example = structure.random("p", (2,), form, num_steps=num_steps, lengths=None, seed=7)
    other = structure.random("q", (2,), num_steps=num_steps, lengths=None, seed=8)

    def ask(d) -> Tensor:
        return divergence(d, other.crf())

    assert_close(slopes(ask, example, True), slopes(ask, example, False))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@over(quantity=BATCHED)
def test_batched_gradients(structure: Structure, quantity: str):
    ask = structure.real_answers[quantity]
    example = structure.random("p", (2,), seed=7)
    first, *others = example.scores.values()

    def answer(scores: Tensor) -> Tensor:
        return ask(example.with_scores(scores, *others).crf()).flatten()

    one_by_one = torch.autograd.functional.jacobian(answer, first)
    at_once = torch.autograd.functional.jacobian(answer, first, vectorize=True)
    assert_close(at_once, one_by_one)
