"""Every fast backend of linear chains, where states are impossible and numbers are single."""

from __future__ import annotations

import math

import pytest
import torch

from structdist import ops
from structdist.ops import Chain, reference
from tests.chains import FORMS
from tests.structures.linear_chain import make_chain

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.mark.parametrize("edge", [0.0, math.nextafter(1.0, 0.0)])
def test_sampling_at_the_edge_never_takes_an_impossible_state(edge: float):
    emissions = torch.tensor([-math.inf, 0.0, -math.inf]).double().expand(1, 4, 3).clone()
    chain = Chain(emissions, torch.zeros(3, 3).double(), torch.tensor([4]))
    uniform = torch.full((1, 1, 4), edge, dtype=torch.float64)
    assert (ops.sample_paths(chain, ops.run_forward(chain), uniform) == 1).all()


@pytest.mark.parametrize("form", FORMS)
def test_float32_is_close_to_float64(form: str):
    chain = make_chain(form, "forbidden", 63, 17)
    single = Chain(chain.emissions.float(), chain.transitions.float(), chain.lengths)
    double = Chain(single.emissions.double(), single.transitions.double(), chain.lengths)
    for f in (ops.log_partition, lambda c, forward: ops.marginals(c, forward, 0), ops.entropy):
        found, expected = f(single, ops.run_forward(single)), f(double, ops.run_forward(double))
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_bad_lengths_stay_within_memory():
    """They count as the nearest that can be."""
    chain = make_chain("shared", "plain", 7, 4)
    emissions = chain.emissions.nan_to_num()[:3]
    found, expected = (
        Chain(emissions, chain.transitions, torch.tensor(lengths))
        for lengths in ([7, 1000, -7], [7, 7, 0])
    )
    uniform = torch.rand(2, 3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for ask in (
        ops.log_partition,
        ops.entropy,
        lambda c, forward: ops.marginals(c, forward, 0),
        lambda c, forward: ops.sample_paths(c, forward, uniform),
        lambda c, _: ops.viterbi(c).path,
    ):
        wanted = ask(expected, ops.run_forward(expected))
        torch.testing.assert_close(ask(found, ops.run_forward(found)), wanted)


@pytest.mark.parametrize("states", [1, 5, 20, 33])
def test_of_states_that_are_level_the_first_is_taken(states: int):
    """As the reference does: without noise, a relaxed best path meets ties all along."""
    generator = torch.Generator().manual_seed(states)
    shapes = [(5, 9, states), (states, states)]
    scores = [torch.randint(2, shape, generator=generator).double() for shape in shapes]
    chain = Chain(*scores, torch.tensor([9, 5, 1, 0, 8]))
    found = ops.relaxed_viterbi(chain, 1.0).path
    assert torch.equal(found, reference.relaxed_viterbi(chain, 1.0).path)
