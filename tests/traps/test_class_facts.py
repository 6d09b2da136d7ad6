"""What is known without numbers: from the class, from meta tensors, from the documentation."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Independent, constraints, kl_divergence

from structdist import LinearChainCRF, StructuredDistribution
from tests.traps.chains import chain, scores

T, K = 4, 3


def test_the_support_is_known_on_the_class():
    support = LinearChainCRF.support
    assert constraints.is_dependent(support)
    assert support.event_dim == 2
    assert support.is_discrete is True
    made = chain((2,)).support
    assert (made.event_dim, made.is_discrete) == (2, True)


def test_constraints_of_arguments_are_known_on_the_class():
    found = LinearChainCRF.arg_constraints
    dims = {"emissions": 2, "transitions": 2, "start": 1, "end": 1}
    assert {name: found[name].event_dim for name in found} == dims
    assert not any(constraint.is_discrete for constraint in found.values())
    assert all(hasattr(chain((2,)), name) for name in found)


def test_what_can_be_asked_is_known_on_the_class():
    assert LinearChainCRF.has_rsample
    assert LinearChainCRF.has_enumerate_support
    assert issubclass(LinearChainCRF, StructuredDistribution)


def test_the_support_of_independent_chains():
    dist = Independent(chain((2,)), 1)
    assert dist.support.event_dim == 3
    assert dist.support.check(dist.sample((5,))).all()


def test_changes_that_cannot_be_seen_are_documented():
    words = " ".join(StructuredDistribution.__doc__.split())
    assert "a change through `x.data` cannot be seen" in words


def test_changes_are_seen_and_those_through_data_are_not():
    """As the documentation says."""
    made = scores((2,))
    dist = LinearChainCRF(**made)
    before = dist.log_partition.clone()
    made["emissions"].add_(1.0)
    torch.testing.assert_close(dist.log_partition, before + T)
    made["emissions"].data.add_(1.0)
    torch.testing.assert_close(dist.log_partition, before + T)
    torch.testing.assert_close(LinearChainCRF(**made).log_partition, before + 2 * T)


# Meta tensors --------------------------------------------------------------------------------

META = {
    "log_partition": (lambda d: d.log_partition, (5, 2)),
    "marginals": (lambda d: d.marginals, (5, 2, T, K)),
    "mean": (lambda d: d.mean, (5, 2, T, K)),
    "variance": (lambda d: d.variance, (5, 2, T, K)),
    "edge_marginals": (lambda d: d.edge_marginals, (5, 2, T - 1, K, K)),
    "entropy": (lambda d: d.entropy(), (5, 2)),
    "argmax": (lambda d: d.argmax, (5, 2, T)),
    "mode": (lambda d: d.mode, (5, 2, T, K)),
    "topk": (lambda d: d.topk(2).paths, (2, 5, 2, T)),
    "topk log_probs": (lambda d: d.topk(2).log_probs, (2, 5, 2)),
    "sample_paths": (lambda d: d.sample_paths((7,)), (7, 5, 2, T)),
    "sample": (lambda d: d.sample((7,)), (7, 5, 2, T, K)),
    "rsample": (lambda d: d.rsample((7,)), (7, 5, 2, T, K)),
    "straight through": (lambda d: d.rsample((7,), straight_through=True), (7, 5, 2, T, K)),
    "temperatures": (lambda d: d.rsample(temperature=d.lengths * 0.5 + 1), (5, 2, T, K)),
    "perturb_and_map": (lambda d: d.perturb_and_map((7,)), (7, 5, 2, T, K)),
    "with log_prob": (lambda d: d.sample_with_log_prob((7,)).log_prob, (7, 5, 2)),
    "with paths": (lambda d: d.rsample_with_paths((7,)).paths, (7, 5, 2, T)),
    "log_prob": (lambda d: d.log_prob(d.argmax), (5, 2)),
    "log_prob of events": (lambda d: d.log_prob(d.sample((7,))), (7, 5, 2)),
    "kl": (lambda d: kl_divergence(d, d), (5, 2)),
    "cross_entropy": (lambda d: d.cross_entropy(d), (5, 2)),
    "renyi_2": (lambda d: d.renyi_entropy(2), (5, 2)),
    "renyi_inf": (lambda d: d.renyi_entropy(math.inf), (5, 2)),
    "expectation": (lambda d: d.expectation(d.emissions), (5, 2)),
    "condition": (lambda d: d.condition(d.argmax).log_partition, (5, 2)),
    "restrict": (lambda d: d.restrict(d.emissions > -9).entropy(), (5, 2)),
    "expand": (lambda d: d.expand((6, 5, 2)).entropy(), (6, 5, 2)),
    "straight_through type": (lambda d: d.straight_through(0.5).rsample(), (5, 2, T, K)),
    "relaxed type": (lambda d: d.relaxed(d.lengths * 0.5 + 1).rsample(), (5, 2, T, K)),
}


@pytest.mark.parametrize("with_lengths", [False, True])
@pytest.mark.parametrize("name", META)
def test_meta_tensors_pass_through(name, with_lengths):
    given = {name: x.to("meta") for name, x in scores((5, 2), T, K).items()}
    lengths = torch.ones(5, 2, dtype=torch.long, device="meta") if with_lengths else None
    ask, shape = META[name]
    found = ask(LinearChainCRF(**given, lengths=lengths))
    assert found.is_meta
    assert found.shape == shape
    true = ask(chain((5, 2), T, K))
    assert (found.shape, found.dtype) == (true.shape, true.dtype)


@pytest.mark.parametrize("form", [(K, K), (5, K, K), (5, T - 1, K, K)])
def test_meta_transitions_of_every_form(form):
    transitions = torch.zeros(form, device="meta", requires_grad=True)
    emissions = torch.zeros(5, T, K, device="meta", requires_grad=True)
    dist = LinearChainCRF(emissions, transitions)
    (dist.entropy().sum() + dist.rsample().sum()).backward()
    assert emissions.grad.shape == emissions.shape
    assert transitions.grad.shape == transitions.shape
