"""Temperatures: cold draws are hard ones, and tensors get gradients."""

from __future__ import annotations

import torch

from structdist.estimators import estimator
from tests.estimators.runs import linear, tanh
from tests.structures.registry import over
from tests.structures.structure import seeded


@over(name=["gumbel-crf", "pm-mrf", "sst"])
def test_cold_draws_are_hard(structure, name):
    """To those of the straight-through twin, which has the same noise."""
    dist = structure.forbid_some(structure.random("cold", (5,)), seed=1).crf()
    reward = tanh(dist.event_shape)
    settings = {"num_samples": 20, "temperature": 1e-6}
    soft = estimator(name, **settings).estimate(dist, reward, generator=seeded(0))
    hard = estimator(f"{name}-st", **settings).estimate(dist, reward, generator=seeded(0))
    torch.testing.assert_close(soft.draws, hard.draws, atol=1e-3, rtol=0)
    torch.testing.assert_close(soft.surrogate, hard.surrogate, atol=1e-3, rtol=0)


@over(name=["gumbel-crf", "gumbel-crf-st", "pm-mrf", "gumbel-rao", "sst"])
def test_temperatures_that_are_tensors(structure, name):
    """One of them is that number, and gets a gradient; what is forbidden leaves it finite."""
    example = structure.forbid_some(structure.random("warm", (5,)), seed=1).with_padding(torch.nan)
    dist = example.leaves().crf()
    reward = tanh(dist.event_shape)
    temperature = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    by_number, by_tensor = (
        estimator(name, temperature=x).estimate(dist, reward, generator=seeded(0))
        for x in (0.4, temperature)
    )
    torch.testing.assert_close(by_tensor.surrogate, by_number.surrogate)
    (found,) = torch.autograd.grad(by_tensor.surrogate, temperature)
    assert found.isfinite()
    assert found != 0


@over(name=["gumbel-crf", "pm-mrf", "gumbel-rao"])
def test_a_temperature_for_each_structure(structure, name):
    example = structure.random("each", (5,), lengths=None).leaves()
    reward = linear(example.crf().event_shape)
    scores = next(iter(example.scores.values()))
    cold = torch.tensor([0.3, 1.0, 0.3, 1.0, 0.3])
    found = []
    for temperature in (cold, 0.3, 1.0):
        surrogate = (
            estimator(name, temperature=temperature)
            .estimate(example.crf(), reward, generator=seeded(0))
            .surrogate
        )
        found.append(torch.autograd.grad(surrogate, scores)[0])
    torch.testing.assert_close(found[0][::2], found[1][::2])
    torch.testing.assert_close(found[0][1::2], found[2][1::2])
