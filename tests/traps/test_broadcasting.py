"""Batch dimensions of size 1 broadcast against values, as those of `OneHotCategorical` do."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.distributions import OneHotCategorical
from torch.nn.functional import one_hot

from structdist import LinearChainCRF
from tests.traps.chains import chain, gradients, leaves, normal, random_paths, scores

T, K = 3, 2
SHAPES = [  # of the batch, and of what comes before the event in a value
    ((1,), (5,)),
    ((1,), (1,)),
    ((1,), (4, 5)),
    ((1,), ()),
    ((1, 3), (2, 3)),
    ((1, 3), (3,)),
    ((1, 3), (4, 2, 3)),
    ((1, 3), (1, 1)),
    ((2, 1), (2, 4)),
    ((2, 1), (4,)),
    ((2, 1), (5, 2, 4)),
    ((2, 1), (5, 1, 4)),
    ((1, 1), (2, 4)),
    ((3,), (1,)),
    ((3,), (2, 1)),
    ((2, 3), (1, 3)),
    ((), (4, 5)),
]
over_shapes = pytest.mark.parametrize(("batch_shape", "value_shape"), SHAPES)


@over_shapes
def test_shapes_are_those_of_torch(batch_shape, value_shape):
    paths = random_paths(*value_shape, T, num_states=K)
    dist, plain = chain(batch_shape, T, K), OneHotCategorical(normal(*batch_shape, K).exp())
    expected = plain.log_prob(one_hot(paths[..., 0], K).double()).shape
    assert dist.log_prob(paths).shape == expected
    assert dist.log_prob(one_hot(paths, K).double()).shape == expected
    assert dist.straight_through(1.0).log_prob(one_hot(paths, K).double()).shape == expected


@over_shapes
def test_values_are_those_of_a_loop(batch_shape, value_shape):
    paths, start = random_paths(*value_shape, T, num_states=K), normal(K, seed=4)
    emissions, transitions = normal(*batch_shape, T, K), normal(K, K, seed=1)
    found = LinearChainCRF(emissions, transitions, start=start).log_prob(paths)
    shape = torch.broadcast_shapes(batch_shape, value_shape)
    wide_emissions, wide_paths = emissions.expand(*shape, T, K), paths.expand(*shape, T)
    assert found.shape == shape
    for index in itertools.product(*map(range, shape)):
        alone = LinearChainCRF(wide_emissions[index], transitions, start=start)
        torch.testing.assert_close(found[index], alone.log_prob(wide_paths[index]))


@pytest.mark.parametrize(
    ("batch_shape", "value_shape"), [((2,), (3,)), ((2, 3), (2,)), ((2, 1), (3, 4)), ((4,), (0,))]
)
def test_what_does_not_broadcast_is_an_error(batch_shape, value_shape):
    paths = random_paths(*value_shape, T, num_states=K)
    for validate_args in (True, False):
        with pytest.raises(ValueError, match=r"value.*does not broadcast"):
            chain(batch_shape, T, K, validate_args=validate_args).log_prob(paths)


def test_gradients_are_those_of_the_expanded_chain():
    made, wide = leaves(scores((2, 1), T, K)), leaves(scores((2, 1), T, K))
    paths = random_paths(5, 2, 4, T, num_states=K)
    lengths = torch.tensor([[3], [2]])
    found = LinearChainCRF(**made, lengths=lengths).log_prob(paths)
    expected = LinearChainCRF(**wide, lengths=lengths).expand((2, 4)).log_prob(paths)
    assert torch.equal(found, expected)
    wanted = gradients(expected, wide)
    for name, grad in gradients(found, made).items():
        assert grad.shape == made[name].shape
        torch.testing.assert_close(grad, wanted[name])


@pytest.mark.parametrize("form", [(K, K), (2, 1, K, K), (1, 1, K, K), (2, 1, T - 1, K, K)])
def test_transitions_of_every_form_broadcast(form):
    emissions, transitions = normal(2, 1, T, K), normal(*form, seed=1)
    paths = random_paths(5, 2, 4, T, num_states=K)
    found = LinearChainCRF(emissions, transitions).log_prob(paths)
    assert found.shape == (5, 2, 4)
    alone = [LinearChainCRF(emissions, transitions).log_prob(x) for x in paths.split(1, -2)]
    torch.testing.assert_close(found, torch.cat(alone, -1))


def test_strict_values_broadcast_too():
    transitions = torch.zeros(K, K)
    transitions[0, 1] = -torch.inf
    dist = LinearChainCRF(torch.zeros(1, T, K), transitions)
    paths = torch.tensor([[0, 0, 0], [1, 1, 0], [0, 0, 1]])
    assert dist.log_prob(paths[:2], strict=True).shape == (2,)
    with pytest.raises(ValueError, match=r"batch index \(2,\).*from 0 to 1 into step 2"):
        dist.log_prob(paths, strict=True)
