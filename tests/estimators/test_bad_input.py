"""Wrong settings, rewards and distributions: one error that names what is wrong."""

from __future__ import annotations

import pytest
import torch

from structdist import LinearChainCRF
from structdist.estimators import (
    ESTIMATORS,
    IMLE,
    SYNONYMS,
    AdaptiveStep,
    Exact,
    GumbelCRF,
    GumbelRao,
    Reinforce,
    StochasticSoftmax,
    estimator,
)

DIST = LinearChainCRF(torch.zeros(2, 3, 4, requires_grad=True), torch.zeros(4, 4))
PATHWISE = [name for name, x in ESTIMATORS.items() if x.pathwise]


def total(z: torch.Tensor) -> torch.Tensor:
    return z.sum((-2, -1))


SETTINGS = {
    "num_samples must be at least 1": lambda: GumbelCRF(num_samples=0),
    "num_samples must be an integer": lambda: Reinforce(num_samples=2.5),
    "num_samples must be at least 2": lambda: Reinforce(num_samples=1, leave_one_out=True),
    "num_samples must be an integer, got True": lambda: GumbelRao(num_samples=True),
    "temperature must be positive": lambda: GumbelCRF(temperature=-1.0),
    "temperature must be a number": lambda: GumbelCRF(temperature="warm"),
    "temperature must be one number": lambda: StochasticSoftmax(temperature=torch.ones(3)),
    "noise_samples must be an integer from 1 up": lambda: GumbelRao(noise_samples=0),
    "constant must be a number": lambda: Reinforce(constant="low"),
    "step must be positive": lambda: IMLE(step=0.0),
    "reach must be positive": lambda: AdaptiveStep(reach=-1.0),
    "max_outcomes must be an integer from 1 up": lambda: Exact(max_outcomes=0),
    "name must be one of gumbel-crf, .*vargrad": lambda: estimator("gumble-crf"),
    "reinmax has no setting 'temperature', only num_samples": lambda: estimator(
        "reinmax", temperature=1.0
    ),
}


@pytest.mark.parametrize("message", SETTINGS)
def test_settings(message):
    with pytest.raises(ValueError, match=message):
        SETTINGS[message]()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_distributions(name):
    with pytest.raises(ValueError, match=r"dist must be .*StraightThrough \(take its .base\)"):
        ESTIMATORS[name].estimate(DIST.straight_through(), total)
    with pytest.raises(ValueError, match="dist must be a StructuredDistribution, got Normal"):
        ESTIMATORS[name].estimate(torch.distributions.Normal(0.0, 1.0), total)


@pytest.mark.parametrize("name", [n for n, x in ESTIMATORS.items() if "temperature" in x.settings])
def test_temperatures_that_are_tensors(name):
    """Their values are looked at where they are used."""
    cold = torch.tensor(-0.5, requires_grad=True)
    with pytest.raises(ValueError, match="temperature must be positive"):
        estimator(name, temperature=cold).estimate(DIST, total)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_structures_without_an_outcome(name):
    emissions = torch.zeros(2, 3, 4)
    emissions[1, 2] = -torch.inf
    dist = LinearChainCRF(emissions.requires_grad_(), torch.zeros(4, 4))
    with pytest.raises(
        ValueError, match=r"the chain at batch index \((0, )?1,?\) has no allowed path"
    ):
        estimator(name).estimate(dist, total)


REWARDS = {
    r"one number for each draw, \(\d+, 2\), got \(\d+, 2, 3\)": lambda z: z.sum(-1),
    "floating-point tensor, got torch.int64": lambda z: total(z).long(),
    "floating-point tensor, got float": lambda z: 1.0,
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("message", REWARDS)
def test_rewards(name, message):
    with pytest.raises(
        ValueError, match=f"reward must give {'a ' * ('tensor' in message)}{message}"
    ):
        estimator(name).estimate(DIST, REWARDS[message])


@pytest.mark.parametrize("name", PATHWISE)
def test_rewards_without_a_gradient(name):
    with pytest.raises(ValueError, match="reward must be differentiable in its events"):
        estimator(name).estimate(DIST, lambda z: total(z.detach()))


@pytest.mark.parametrize("name", ["imle", "muprop"])
def test_rewards_with_a_gradient_for_others_alone(name):
    weights = torch.ones(3, 4, requires_grad=True)
    with pytest.raises(ValueError, match="reward must be differentiable in its events"):
        estimator(name).estimate(DIST, lambda z: total(z.detach() * weights))


def test_too_many_outcomes():
    dist = LinearChainCRF(torch.zeros(2, 30, 4), torch.zeros(4, 4), torch.tensor([2, 30]))
    with pytest.raises(ValueError, match=r"1.15e\+18 outcomes, too many to enumerate .*10000"):
        Exact().estimate(dist, total)


def test_names():
    """Those of the paper's are as its tables have them; synonyms lead to what is registered."""
    papers = [
        "gumbel-crf",
        "pm-mrf",
        "reinforce-ms",
        "gumbel-crf-st",
        "pm-mrf-st",
        "reinforce-ms-c",
    ]
    assert set(papers) <= set(ESTIMATORS)
    assert set(SYNONYMS.values()) <= set(ESTIMATORS)
    assert not set(SYNONYMS) & set(ESTIMATORS)
    assert estimator("reinforce-ms", num_samples=3) == Reinforce(num_samples=3, leave_one_out=True)
