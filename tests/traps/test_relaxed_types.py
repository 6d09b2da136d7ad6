"""`Relaxed` and `StraightThrough`: distributions that carry their temperature."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch.distributions import Independent, OneHotCategorical, kl_divergence

from structdist import LinearChainCRF, Relaxed, StraightThrough
from tests.traps.chains import chain, gradients, leaves, normal, scores

T, K = 4, 3
LENGTHS = torch.tensor([4, 2, 0])
KINDS = {"relaxed": Relaxed, "straight_through": StraightThrough}
over_kinds = pytest.mark.parametrize("kind", KINDS)


def make(kind: str, temperature: float | torch.Tensor = 0.5, batch_shape: tuple = (3,)):
    lengths = LENGTHS if batch_shape[-1:] == (3,) else None
    return getattr(chain(batch_shape, T, K, lengths=lengths), kind)(temperature)


# What both are -------------------------------------------------------------------------------


@over_kinds
@pytest.mark.parametrize("sample_shape", [(), (2,), (2, 1)])
def test_draws_lie_in_the_support(kind, sample_shape):
    dist = make(kind)
    assert isinstance(dist, KINDS[kind])
    assert dist.has_rsample
    assert (dist.batch_shape, dist.event_shape) == ((3,), (T, K))
    for value in (dist.rsample(sample_shape), dist.sample(sample_shape)):
        assert value.shape == (*sample_shape, 3, T, K)
        assert dist.support.check(value).shape == (*sample_shape, 3)
        assert dist.support.check(value).all()


def test_the_supports_tell_relaxed_from_hard_rows():
    soft, hard = make("relaxed"), make("straight_through")
    relaxed = soft.rsample((20,))
    assert not hard.support.check(relaxed)[:, :2].any()
    assert soft.support.check(hard.rsample((20,))).all()
    assert not soft.support.check(relaxed * 1.01)[:, :2].any()
    assert not soft.support.check(-relaxed)[:, :2].any()
    assert (soft.support.is_discrete, hard.support.is_discrete) == (False, True)
    assert soft.support.event_dim == hard.support.event_dim == 2


@over_kinds
def test_what_is_known_on_the_class(kind):
    assert KINDS[kind].support.is_discrete == (kind == "straight_through")
    assert KINDS[kind](chain((3,))).support.event_dim == 2  # of the base, hence not on the class
    assert KINDS[kind].arg_constraints["temperature"] is torch.distributions.constraints.positive


@over_kinds
@pytest.mark.parametrize("temperature", [0.1, 0.5, 2])
def test_draws_and_gradients_are_those_of_rsample(kind, temperature):
    """Numbers keep all their digits: 0.1 is not rounded to float32 on its way."""
    made = leaves(scores((3,), T, K))
    dist = LinearChainCRF(**made, lengths=LENGTHS)
    torch.manual_seed(3)
    found = getattr(dist, kind)(temperature).rsample((2,))
    torch.manual_seed(3)
    expected = dist.rsample(
        (2,), temperature=temperature, straight_through=kind == "straight_through"
    )
    assert torch.equal(found, expected)
    wanted = gradients(expected, made)
    for name, grad in gradients(found, made).items():
        assert grad.abs().sum() > 0
        assert torch.equal(grad, wanted[name])


@over_kinds
def test_independent(kind):
    dist = Independent(make(kind), 1)
    assert (dist.batch_shape, dist.event_shape) == ((), (3, T, K))
    assert dist.has_rsample
    value = dist.rsample((2,))
    assert value.shape == (2, 3, T, K)
    assert dist.support.check(value).all()
    assert dist.expand((5,)).rsample((2,)).shape == (2, 5, 3, T, K)


@over_kinds
def test_expand(kind):
    temperature = torch.tensor([0.1, 0.5, 2.0], requires_grad=True)
    dist = make(kind, temperature).expand((5, 3))
    assert isinstance(dist, KINDS[kind])
    assert dist.batch_shape == (5, 3)
    assert dist.temperature.shape == (5, 3)
    assert torch.equal(dist.base.lengths, LENGTHS.expand(5, 3))
    value = dist.rsample((2,))
    assert value.shape == (2, 5, 3, T, K)
    value.pow(2).sum().backward()
    assert temperature.grad.shape == (3,)
    plain = make(kind, 0.1).expand((5, 3))
    assert plain.temperature == 0.1
    assert plain.rsample().shape == (5, 3, T, K)


@over_kinds
@pytest.mark.parametrize("validate_args", [True, False])
def test_expand_keeps_validation(kind, validate_args):
    dist = KINDS[kind](chain((3,), T, K), 0.5, validate_args=validate_args)
    assert dist.expand((5, 3))._validate_args is validate_args


@over_kinds
def test_subclasses_with_a_constructor_of_their_own_expand(kind):
    class Annealed(KINDS[kind]):
        def __init__(self, step: int) -> None:
            super().__init__(chain((3,), T, K), 1 / step)
            self.step = step

    dist = Annealed(4).expand((5, 3))
    assert type(dist) is Annealed
    assert (dist.step, dist.temperature, dist.batch_shape) == (4, 0.25, (5, 3))
    assert dist.rsample().shape == (5, 3, T, K)
    given = KINDS[kind].__new__(KINDS[kind])
    assert make(kind).expand((5, 3), _instance=given) is given
    assert given.rsample().shape == (5, 3, T, K)


@over_kinds
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_copies(kind, way):
    dist = make(kind, torch.tensor([0.1, 0.5, 2.0]))
    made = way(dist)
    assert type(made) is type(dist)
    torch.manual_seed(3)
    value = dist.rsample()
    torch.manual_seed(3)
    assert torch.equal(made.rsample(), value)


@over_kinds
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_temperatures_get_gradients(kind, shape):
    temperature = normal(*shape).exp().requires_grad_()
    dist = chain((3,), T, K)
    torch.manual_seed(3)
    found = gradients(getattr(dist, kind)(temperature).rsample((2,)), {"temperature": temperature})
    torch.manual_seed(3)
    expected = gradients(dist.rsample((2,), temperature=temperature), {"temperature": temperature})
    assert found["temperature"].abs().min() > 0
    torch.testing.assert_close(found, expected)


def test_temperatures_of_chains_differ():
    """A cold chain beside a hot one."""
    dist = chain((2,), T, K).relaxed(torch.tensor([1e-3, 1e3]))
    sharpest = dist.rsample((20,)).amax(-1)
    assert (sharpest[:, 0] > 0.9).float().mean() > 0.9
    assert (sharpest[:, 1] < 0.4).all()


@over_kinds
@pytest.mark.parametrize(
    "temperature", [0.0, -1.0, float("nan"), float("inf"), torch.tensor([0.5, 0.0, 1.0])]
)
def test_bad_temperatures_are_refused(kind, temperature):
    with pytest.raises(ValueError, match="temperature must be positive"):
        make(kind, temperature)


@over_kinds
@pytest.mark.parametrize("temperature", [torch.ones(2), torch.ones(5, 3), "warm", None])
def test_temperatures_of_a_wrong_kind_are_refused(kind, temperature):
    with pytest.raises(ValueError, match=r"temperature must (be|broadcast)"):
        make(kind, temperature)


@over_kinds
def test_repr(kind):
    dist = make(kind, 0.1)
    assert repr(dist) == f"{KINDS[kind].__name__}({dist.base!r}, temperature=0.1)"
    shown = repr(make(kind, torch.tensor([0.25, 0.5, 2.0])))
    assert "0.25" in shown
    assert "LinearChainCRF(batch_shape=(3,), T=4, K=3)" in shown


# What each is --------------------------------------------------------------------------------


def test_relaxed_draws_have_no_density():
    dist = make("relaxed")
    with pytest.raises(NotImplementedError, match=r"base\.log_prob.*straight_through\(\)"):
        dist.log_prob(dist.rsample())
    with pytest.raises(NotImplementedError, match="straight_through"):
        Independent(dist, 1).log_prob(dist.rsample())
    with pytest.raises(NotImplementedError):
        kl_divergence(dist, dist)


def test_hard_choices_of_relaxed_draws_have_a_log_prob():
    dist = make("relaxed")
    assert dist.base.log_prob(dist.rsample((5,)).argmax(-1)).isfinite().all()


@pytest.mark.parametrize("validate_args", [True, False])
def test_straight_through_draws_have_a_log_prob(validate_args):
    base = chain((3,), T, K, lengths=LENGTHS, validate_args=validate_args)
    dist = StraightThrough(base, 0.5, validate_args=validate_args)
    value = dist.rsample((5,))
    assert torch.equal(dist.log_prob(value), base.log_prob(value))
    assert torch.equal(dist.log_prob(value.argmax(-1)), base.log_prob(value))
    whole = Independent(dist, 1, validate_args=validate_args)
    torch.testing.assert_close(whole.log_prob(value), base.log_prob(value).sum(-1))


def test_straight_through_refuses_relaxed_values():
    dist = make("straight_through")
    with pytest.raises(ValueError, match="one-hot"):
        dist.log_prob(make("relaxed").rsample())


def test_everything_else_is_that_of_the_base():
    dist = make("straight_through")
    for name in ("mean", "mode", "variance", "stddev"):
        assert torch.equal(getattr(dist, name), getattr(dist.base, name))
    assert torch.equal(dist.entropy(), dist.base.entropy())
    assert torch.equal(dist.perplexity(), dist.base.perplexity())
    same = make("straight_through", batch_shape=(2,))
    assert same.has_enumerate_support
    assert torch.equal(same.enumerate_support(), same.base.enumerate_support())
    assert same.enumerate_support(expand=False).shape == (K**T, 1, T, K)
    torch.testing.assert_close(Independent(dist, 1).entropy(), Independent(dist.base, 1).entropy())


def test_divergences_of_straight_through_draws():
    """The temperature is no part of them; a prior need not have one."""
    p, q = chain((3,), T, K), chain((3,), T, K, seed=5)
    expected = kl_divergence(p, q)
    for left in (p, p.straight_through(0.5)):
        for right in (q, q.straight_through(2.0)):
            assert torch.equal(kl_divergence(left, right), expected)
    whole = kl_divergence(Independent(p.straight_through(), 1), Independent(q, 1))
    torch.testing.assert_close(whole, expected.sum())
    with pytest.raises(NotImplementedError):
        kl_divergence(p.straight_through(), OneHotCategorical(torch.ones(3)))


def test_subclasses_make_them_too():
    class Tagger(LinearChainCRF):
        pass

    base = Tagger(normal(3, T, K), normal(K, K))
    dist = base.straight_through(0.5).expand((5, 3))
    assert type(dist.base) is Tagger
    assert "Tagger" in repr(dist)
