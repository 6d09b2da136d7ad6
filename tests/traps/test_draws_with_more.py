"""Draws that come with their log probabilities or paths, for the price of the draw."""

from __future__ import annotations

import pytest
import torch

from structdist import LinearChainCRF, ops
from tests.traps.chains import chain, gradients, leaves, scores, seeded

SHAPES = [((), ()), ((2,), ()), ((), (3,)), ((2,), (3,)), ((2, 1), (5, 3)), ((0,), (3,))]
over_shapes = pytest.mark.parametrize(("sample_shape", "batch_shape"), SHAPES)


@pytest.fixture
def forward_passes(monkeypatch):
    """A list that grows with every forward pass."""
    passes = []
    run = ops.forward_by

    def counted(backend, problem):
        passes.append(problem)
        return run(backend, problem)

    monkeypatch.setattr(ops, "forward_by", counted)
    return passes


@over_shapes
def test_log_probs_are_those_of_the_paths(backend, sample_shape, batch_shape):
    dist = chain(batch_shape)
    paths, log_prob = dist.sample_with_log_prob(sample_shape, generator=seeded(1))
    assert paths.shape == (*sample_shape, *batch_shape, 4)
    assert log_prob.shape == sample_shape + batch_shape
    assert torch.equal(paths, dist.sample_paths(sample_shape, generator=seeded(1)))
    torch.testing.assert_close(log_prob, dist.log_prob(paths))


def test_log_probs_have_the_gradient_of_those_of_the_paths(backend):
    made = leaves(scores((3,)))
    dist = LinearChainCRF(**made, lengths=torch.tensor([4, 2, 0]))
    paths, log_prob = dist.sample_with_log_prob((5,), generator=seeded(1))
    assert not paths.requires_grad
    expected = gradients(dist.log_prob(paths), made)
    for name, grad in gradients(log_prob, made).items():
        assert grad.abs().sum() > 0
        torch.testing.assert_close(grad, expected[name])


def test_log_probs_of_draws_under_no_grad():
    dist = LinearChainCRF(**leaves(scores((3,))))
    with torch.no_grad():
        assert not dist.sample_with_log_prob((5,)).log_prob.requires_grad
    assert dist.sample_with_log_prob((5,)).log_prob.requires_grad


def test_one_forward_pass_for_draws_and_log_probs(forward_passes):
    made = leaves(scores((3,)))
    LinearChainCRF(**made).sample_with_log_prob((5,)).log_prob.sum().backward()
    assert len(forward_passes) == 1


def test_one_forward_pass_for_everything(forward_passes):
    dist = LinearChainCRF(**leaves(scores((3,))))
    dist.rsample_with_paths((5,)).value.sum().backward()
    dist.sample_with_log_prob((5,)).log_prob.sum().backward()
    dist.entropy().sum().backward()
    assert len(forward_passes) == 1
    dist.emissions.detach().add_(1.0)
    dist.sample_with_log_prob((5,))
    assert len(forward_passes) == 2


@over_shapes
@pytest.mark.parametrize("straight_through", [False, True])
def test_paths_are_those_behind_the_relaxation(
    backend, sample_shape, batch_shape, straight_through
):
    lengths = torch.tensor([4, 2, 0]) if batch_shape[-1:] == (3,) else None
    dist = chain(batch_shape, lengths=lengths)
    options = {"temperature": 0.3, "straight_through": straight_through}
    value, paths = dist.rsample_with_paths(sample_shape, generator=seeded(1), **options)
    assert paths.shape == (*sample_shape, *batch_shape, 4)
    assert paths.dtype == torch.long
    assert torch.equal(paths, value.argmax(-1))
    assert torch.equal(value, dist.rsample(sample_shape, generator=seeded(1), **options))


def test_the_relaxation_beside_its_paths_has_its_gradient(backend):
    made = leaves(scores((3,)))
    dist = LinearChainCRF(**made)
    value, paths = dist.rsample_with_paths((5,), generator=seeded(1), temperature=0.5)
    assert not paths.requires_grad
    expected = gradients(dist.rsample((5,), generator=seeded(1), temperature=0.5), made)
    for name, grad in gradients(value, made).items():
        assert grad.abs().sum() > 0
        assert torch.equal(grad, expected[name])


def test_log_prob_of_the_paths_behind_a_relaxation():
    dist = chain((3,), lengths=torch.tensor([4, 2, 0]))
    value, paths = dist.rsample_with_paths((5,), straight_through=True)
    assert torch.equal(dist.log_prob(value), dist.log_prob(paths))
