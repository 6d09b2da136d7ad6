"""Float32 against float64 log space, where products underflow and sums grow large."""

from __future__ import annotations

import functools
import math

import pytest
import torch

from structdist import LinearChainCRF
from structdist.ops import Chain, path_scores, reference

pytestmark = pytest.mark.usefixtures("kernels")


def make_scores(kind: str, num_steps: int, num_states: int = 8) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    emissions = torch.randn(2, num_steps, num_states, generator=generator)
    transitions = torch.randn(num_states, num_states, generator=generator)
    if "large" in kind:
        emissions, transitions = emissions * 1e4, transitions * 1e4
    if "one way" in kind:  # all but one transition out of each state are forbidden
        only = torch.randperm(num_states, generator=generator)
        allowed = torch.nn.functional.one_hot(only, num_states).bool()
        transitions = transitions.masked_fill(~allowed, -torch.inf)
    if "sticky" in kind:  # close calls at a large offset
        emissions = emissions + 1e4
        transitions = transitions - 1e4
    return emissions, transitions


KINDS = ["plain", "large", "one way", "large one way", "sticky", "sticky one way"]


def exact_chain(kind: str, num_steps: int) -> Chain:
    emissions, transitions = make_scores(kind, num_steps)
    return Chain(emissions.double(), transitions.double(), torch.full((2,), num_steps))


@functools.cache
def exactly(question: str, kind: str, num_steps: int) -> torch.Tensor:
    """An answer of the reference, which takes its time: once for all backends."""
    chain = exact_chain(kind, num_steps)
    if question == "marginals":
        return reference.marginals(chain, 0)
    return getattr(reference, question)(chain)


@functools.cache
def exact_gradients(kind: str, num_steps: int) -> tuple[torch.Tensor, ...]:
    """Of the entropy, by the reference."""
    *scores, lengths = exact_chain(kind, num_steps)
    leaves = [x.requires_grad_() for x in scores]
    return torch.autograd.grad(reference.entropy(Chain(*leaves, lengths)).sum(), leaves)


@pytest.mark.parametrize("kind", KINDS)
def test_log_partition_of_a_long_chain(kind):
    emissions, transitions = make_scores(kind, num_steps=1000)
    found = LinearChainCRF(emissions, transitions).log_partition.double()
    expected = exactly("log_partition", kind, 1000)
    assert ((found - expected).abs() <= 1e-5 * expected.abs()).all()


@pytest.mark.parametrize("kind", KINDS)
def test_entropy_and_marginals_of_a_long_chain(kind):
    emissions, transitions = make_scores(kind, num_steps=500)
    found = LinearChainCRF(emissions, transitions)
    assert ((found.entropy() - exactly("entropy", kind, 500)).abs() < 1e-3).all()
    assert ((found.marginals - exactly("marginals", kind, 500)).abs() < 1e-4).all()


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_a_long_chain(kind):
    emissions, transitions = make_scores(kind, num_steps=300)
    single = [x.requires_grad_() for x in (emissions, transitions)]
    found = torch.autograd.grad(LinearChainCRF(*single).entropy().sum(), single)
    for one, other in zip(found, exact_gradients(kind, 300), strict=True):
        scale = other.abs().max().clamp(min=1)
        assert ((one - other).abs() / scale < 1e-3).all()


def test_a_state_that_looked_lost_is_found_again():
    """State 1 falls e^-300 behind, then every path but its own is cut off."""
    emissions = torch.zeros(1, 60, 2)
    emissions[:, :30, 1] = -10.0
    emissions[:, 45, 0] = -torch.inf
    transitions = torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]])
    chain = LinearChainCRF(emissions, transitions)
    torch.testing.assert_close(chain.log_partition, torch.tensor([-300.0]))
    assert (chain.argmax == 1).all()
    assert (chain.sample_paths((20,)) == 1).all()
    assert (chain.rsample((20,)).argmax(-1) == 1).all()
    torch.testing.assert_close(chain.marginals[..., 1], torch.ones(1, 60))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [0.0, -50.0])
def test_the_only_path_is_found_however_unlikely_its_moves_are(dtype, offset):
    """From step 0 on the state with all the weight leads nowhere but by a move of e^-2000."""
    emissions = torch.tensor([[0.0, -3000.0], [-torch.inf, 0.0], [0.0, 0.0]], dtype=dtype) + offset
    transitions = torch.tensor([[0.0, -2000.0], [0.0, 0.0]], dtype=dtype)
    for scores in ((emissions, transitions), (emissions[None], transitions.expand(1, 2, 2))):
        dist = LinearChainCRF(*scores, validate_args=False)
        expected = torch.tensor(-2000.0 + 3 * offset + math.log(2.0), dtype=dtype)
        torch.testing.assert_close(dist.log_partition.squeeze(), expected)
        torch.testing.assert_close(dist.marginals.sum(-1), torch.ones_like(dist.marginals[..., 0]))


def test_best_paths_of_a_long_chain():
    """Scores add up to 2e6, where float32 counts in steps of 0.1."""
    generator = torch.Generator().manual_seed(5)
    emissions = 10 * torch.randn(4, 2000, 8, generator=generator) + 1e3
    transitions = torch.randn(8, 8, generator=generator)
    dist = LinearChainCRF(emissions, transitions)
    exact = Chain(emissions.double(), transitions.double(), torch.full((4,), 2000))
    best = reference.viterbi(exact).score
    for path in (dist.argmax, dist.topk(2).paths[0]):
        assert ((path_scores(exact, path[None])[0] - best).abs() < 1e-6).all()


@pytest.mark.parametrize("kind", KINDS)
def test_log_prob_of_the_best_path_of_a_long_chain(kind):
    emissions, transitions = make_scores(kind, num_steps=1000)
    dist = LinearChainCRF(emissions, transitions)
    exact = LinearChainCRF(emissions.double(), transitions.double())
    assert ((dist.log_prob(dist.argmax) - exact.log_prob(dist.argmax)).abs() < 1e-2).all()


def test_standard_deviations_are_numbers():
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        emissions = torch.randn(8, 30, 5, generator=generator) * 20
        dist = LinearChainCRF(emissions, torch.randn(5, 5, generator=generator) * 20)
        assert dist.stddev.isfinite().all()


def test_renyi_entropy_near_order_one():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(100, 5, generator=generator), torch.randn(5, 5, generator=generator)
    dist = LinearChainCRF(*scores)
    for order in (1 - 1e-4, 1 + 1e-6):
        assert (dist.renyi_entropy(order) - dist.entropy()).abs() < 1e-2


def test_cold_relaxations_have_finite_gradients():
    for temperature in (1e-3, 1e-20, 1e-45, 5e-324):
        emissions = torch.randn(3, 6, 4, requires_grad=True)
        sample = LinearChainCRF(emissions, torch.zeros(4, 4)).rsample(temperature=temperature)
        (sample * torch.randn(3, 6, 4)).sum().backward()
        assert sample.isfinite().all()
        assert emissions.grad.isfinite().all()


def test_a_last_step_whose_only_state_is_far_below_what_cannot_be_reached():
    """State 0 has the best score of the last step, and no move leads there."""
    for dtype in (torch.float32, torch.float64):
        emissions = torch.tensor([[20.0, -20.0, 0.0], [10.0, -20.0, 0.0]], dtype=dtype)
        transitions = torch.full((3, 3), -torch.inf, dtype=dtype)
        transitions[1, 2] = -1e19
        dist = LinearChainCRF(emissions, transitions)
        torch.testing.assert_close(dist.log_partition, torch.tensor(-1e19, dtype=dtype))
        assert dist.argmax.tolist() == [1, 2]
        torch.testing.assert_close(dist.marginals[:, 1:], torch.eye(2, dtype=dtype))
