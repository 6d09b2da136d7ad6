"""What holds for every estimator and every structure, whatever its bias."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from structdist.estimators import ESTIMATORS, Estimate, Estimator, estimator
from tests.estimators.runs import flat, tanh
from tests.structures.registry import over
from tests.structures.structure import BaseExample, normal, seeded

NAMES = list(ESTIMATORS)
PATHWISE = [name for name, x in ESTIMATORS.items() if x.pathwise]


def estimate_of(estimates: Estimator, example: BaseExample, seed: int = 0) -> Estimate:
    dist = example.crf()
    return estimates.estimate(dist, tanh(dist.event_shape), generator=seeded(seed))


def gradients_of(estimate: Estimate, example: BaseExample) -> dict[str, Tensor]:
    scores = example.scores
    found = torch.autograd.grad(estimate.surrogate, list(scores.values()), materialize_grads=True)
    return dict(zip(scores, found, strict=True))


@over(example="few", name=NAMES)
def test_forbidden_scores_and_padding_get_no_gradient(example, name):
    """Ragged lengths with 0 and 1 among them, -inf and NaN, several shapes of a batch."""
    leaves = example.with_padding(torch.nan).leaves()
    settings = {} if name == "exact" else {"num_samples": 8}
    found = gradients_of(estimate_of(estimator(name, **settings), leaves), leaves)
    assert any((x != 0).any() for x in found.values())
    for score, untouchable in leaves.untouchable().items():
        assert found[score].isfinite().all(), score
        assert (found[score][untouchable] == 0).all(), score


@over(example="few", name=NAMES)
def test_draws_are_events(example, name):
    dist = example.crf()
    estimate = estimate_of(estimator(name), example)
    relaxed = ESTIMATORS[name].relaxed and name not in ("muprop", "sst")
    support = dist.relaxed_support if relaxed else dist.support
    if name != "sst":  # marginals of its structure: of no one support
        assert support.check(estimate.draws).all()
    assert estimate.draws.shape == estimate.rewards.shape + dist.event_shape
    assert estimate.rewards.shape[1:] == dist.batch_shape
    assert not estimate.draws.requires_grad
    assert not estimate.rewards.requires_grad


@over(name=NAMES)
def test_the_value_is_the_mean_reward(structure, name):
    example = structure.random("value", (5,)).leaves()
    estimate = estimate_of(estimator(name), example)
    rewards = tanh(example.crf().event_shape)(estimate.draws)
    if name == "exact":
        probs = example.crf().log_prob(estimate.draws).exp()
        is_outcome = estimate.rewards != 0
        rewards = (probs * rewards * is_outcome).sum(0)
    torch.testing.assert_close(estimate.surrogate, rewards.mean())


@over(name=[name for name in ESTIMATORS if name != "exact"])
def test_the_gradient_of_the_reward_itself_is_that_of_its_mean(structure, name):
    dist = structure.random("own", (5,)).leaves().crf()
    weights = normal(dist.event_shape.numel(), 3).requires_grad_()

    def reward(z: Tensor) -> Tensor:
        return torch.tanh(flat(z, dist.event_shape) @ weights).sum(-1)

    estimate = estimator(name).estimate(dist, reward, generator=seeded(0))
    (found,) = torch.autograd.grad(estimate.surrogate, weights)
    (expected,) = torch.autograd.grad(reward(estimate.draws).mean(), weights)
    torch.testing.assert_close(found, expected)


@over(name=PATHWISE)
def test_a_constant_reward_gives_no_gradient(structure, name):
    example = structure.random("constant", (5,)).leaves()
    estimate = estimator(name).estimate(
        example.crf(), lambda z: 0 * flat(z, z.shape[2:]).sum(-1) + 3
    )
    assert estimate.surrogate.item() == pytest.approx(3)
    assert all((x == 0).all() for x in gradients_of(estimate, example).values())


@over(name=NAMES)
def test_a_generator_decides_the_draws(structure, name):
    example = structure.random("seed", (5,)).leaves()
    first, again, other = (estimate_of(estimator(name), example, seed) for seed in (0, 0, 1))
    assert torch.equal(first.draws, again.draws)
    found, repeated = gradients_of(first, example), gradients_of(again, example)
    assert all(torch.equal(found[score], repeated[score]) for score in found)
    assert torch.equal(first.draws, other.draws) == (name == "exact")


@over(name=NAMES)
def test_padding_is_inert(structure, name):
    plain = structure.random("padded", (5,), structure.forms[-1])
    answers = []
    for padding in (0.0, torch.nan):
        example = plain.with_padding(padding).leaves()
        estimate = estimate_of(estimator(name), example)
        answers.append((estimate.surrogate, *gradients_of(estimate, example).values()))
    for left, right in zip(*answers, strict=True):
        assert torch.equal(left, right)


@over(name=NAMES)
def test_float32_and_no_graph(structure, name):
    example = structure.random("single-precision", (5,)).to(torch.float32)
    leaves = example.leaves()
    estimate = estimate_of(estimator(name), leaves)
    assert estimate.surrogate.dtype == estimate.draws.dtype == torch.float32
    assert all(x.isfinite().all() for x in gradients_of(estimate, leaves).values())
    with torch.no_grad():
        without = estimate_of(estimator(name), leaves)
    assert not without.surrogate.requires_grad
    torch.testing.assert_close(without.surrogate, estimate.surrogate.detach())
    assert not estimate_of(estimator(name), example).surrogate.requires_grad
