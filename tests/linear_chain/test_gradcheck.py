"""Gradients of expectations by their values, against finite differences."""

import pytest
from torch.autograd import gradcheck

from tests.chains import Example
from tests.structures.linear_chain import SMALL
from tests.structures.structure import normal


@pytest.mark.parametrize("example", SMALL, ids=lambda e: e.name)
def test_expectation_gradcheck_in_its_values(example: Example):
    num_steps, num_states = example.emissions.shape[-2:]
    nodes = normal(len(example.lengths), num_steps, num_states).requires_grad_()
    edges = normal(num_states, num_states, seed=1).requires_grad_()
    step_edges = normal(len(example.lengths), num_steps - 1, num_states, num_states)
    crf = example.crf()
    assert gradcheck(crf.expectation, (nodes, edges))
    assert gradcheck(crf.expectation, (nodes, step_edges.requires_grad_()))
