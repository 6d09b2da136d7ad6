"""Subclasses with arguments of their own go through everything that makes the like of them."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, kl_divergence

from structdist import LinearChainCRF
from tests.traps.chains import chain, normal


class Tagger(LinearChainCRF):
    """Other arguments, in another order, and attributes of its own."""

    def __init__(self, names: list[str], features: Tensor, *, sharpness: float) -> None:
        self.names, self.sharpness = names, sharpness
        self.bias = normal(len(names), seed=9)
        num_states = features.shape[-1]
        super().__init__(sharpness * features, torch.zeros(num_states, num_states).double())


class Annotated(LinearChainCRF):
    """The constructor is the base's; one attribute has a batch of its own and grows with it."""

    weight: Tensor

    def expand(self, batch_shape, _instance=None):
        made = self._get_checked_instance(Annotated, _instance)
        made.weight = self.weight.expand(torch.Size(batch_shape))
        return super().expand(batch_shape, _instance=made)


def tagger(batch_shape: tuple = (2,), seed: int = 0) -> Tagger:
    return Tagger(["a", "b", "c"], normal(*batch_shape, 4, 3, seed=seed), sharpness=2.0)


def annotated(batch_shape: tuple = ()) -> Annotated:
    made = Annotated(normal(*batch_shape, 4, 3), normal(3, 3, seed=1))
    made.weight = normal(*batch_shape, seed=2)
    return made


ALLOWED = torch.ones(2, 4, 3, dtype=torch.bool)
ALLOWED[:, 1, 0] = False

WAYS = {
    "expand": lambda d: d.expand((5, 2)),
    "expand to the same": lambda d: d.expand((2,)),
    "condition": lambda d: d.condition(torch.tensor([-1, 2, -1, -1])),
    "condition of more": lambda d: d.condition(torch.full((5, 2, 4), -1)),
    "restrict": lambda d: d.restrict(ALLOWED),
    "restrict of more": lambda d: d.restrict(ALLOWED.expand(5, 2, 4, 3)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda d: pickle.loads(pickle.dumps(d)),
    "independent": lambda d: Independent(d, 1).expand((5,)).base_dist,
    "twice": lambda d: copy.copy(d.expand((5, 2)).restrict(ALLOWED)),
}


@pytest.mark.parametrize("asked_before", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_attributes_and_answers_stay(way, asked_before):
    """Whether or not the forward pass has run, which is not to be handed on."""
    dist = tagger()
    if asked_before:
        assert dist.log_partition.isfinite().all()
    made = WAYS[way](dist)
    assert type(made) is Tagger
    assert made.names == dist.names
    assert made.sharpness == 2.0
    assert torch.equal(made.bias, dist.bias)
    plain = WAYS[way](LinearChainCRF(dist.emissions, dist.transitions))
    assert made.batch_shape == plain.batch_shape
    assert torch.equal(made.log_partition, plain.log_partition)
    assert torch.equal(made.marginals, plain.marginals)


@pytest.mark.parametrize("way", WAYS)
def test_the_original_is_left_alone(way):
    dist = tagger()
    before, kept = dist.log_partition.clone(), dict(vars(dist))
    made = WAYS[way](dist)
    made.names = ["changed"]
    assert dist.names == ["a", "b", "c"]
    assert dist.batch_shape == (2,)
    assert vars(dist).keys() == kept.keys()
    assert torch.equal(dist.log_partition, before)


def test_deep_copies_share_nothing():
    dist = tagger()
    assert dist.log_partition.isfinite().all()
    made = copy.deepcopy(dist)
    made.emissions.add_(1.0)
    made.names.append("d")
    assert dist.names == ["a", "b", "c"]
    torch.testing.assert_close(made.log_partition, dist.log_partition + 4)


def test_validation_is_handed_on():
    dist = chain((2,), validate_args=False)
    for way in WAYS.values():
        assert way(dist)._validate_args is False
    assert chain((2,), validate_args=True).expand((5, 2))._validate_args is True


OTHERS = {
    "class": lambda: chain((2,), seed=3),
    "subclass": lambda: tagger(seed=4),
    "another subclass": lambda: annotated((2,)),
}


@pytest.mark.parametrize("left", OTHERS)
@pytest.mark.parametrize("right", OTHERS)
def test_divergences_between_classes_and_subclasses(left, right):
    p, q = OTHERS[left](), OTHERS[right]()
    plain = [
        LinearChainCRF(d.emissions, d.transitions, d.lengths, start=d.start, end=d.end)
        for d in (p, q)
    ]
    expected = kl_divergence(*plain)
    torch.testing.assert_close(kl_divergence(p, q), expected)
    torch.testing.assert_close(p.cross_entropy(q) - p.entropy(), expected)
    assert (expected > 0.1).all() or left == right


def test_divergences_of_expanded_subclasses():
    p, q = tagger(()), annotated((3,))
    assert kl_divergence(p, q).shape == (3,)
    assert kl_divergence(q, p).shape == (3,)


GROWING = {
    "expand": lambda d: d.expand((5,)),
    "condition": lambda d: d.condition(torch.full((5, 4), -1)),
    "restrict": lambda d: d.restrict(torch.ones(5, 4, 3, dtype=torch.bool)),
    "independent": lambda d: Independent(d.expand((1,)), 1).expand(()).base_dist.expand((5,)),
}


@pytest.mark.parametrize("way", GROWING)
def test_an_expand_of_ones_own_is_respected(way):
    dist = annotated()
    made = GROWING[way](dist)
    assert type(made) is Annotated
    assert made.batch_shape == (5,)
    assert torch.equal(made.weight, dist.weight.expand(5))


def test_an_expand_of_ones_own_is_respected_by_log_prob():
    """Where dimensions of size 1 have to grow."""
    dist, paths = annotated((1,)), torch.zeros(5, 4, dtype=torch.long)
    assert torch.equal(dist.log_prob(paths), dist.log_prob(paths[:1]).expand(5))


def test_an_instance_can_be_given_to_expand():
    """The convention of `torch.distributions`, for subclasses that make the instance."""
    dist = chain((2,))
    given = LinearChainCRF.__new__(LinearChainCRF)
    made = dist.expand((5, 2), _instance=given)
    assert made is given
    assert torch.equal(made.log_partition, dist.log_partition.expand(5, 2))
    assert torch.equal(made.entropy(), dist.entropy().expand(5, 2))
    for validate_args in (True, False):
        given = LinearChainCRF.__new__(LinearChainCRF)
        chain((2,), validate_args=validate_args).expand((5, 2), _instance=given)
        assert given._validate_args is validate_args


def test_a_subclass_with_its_own_constructor_must_expand_as_torch_asks():
    """`_get_checked_instance` is torch's own guard, and still works."""

    class Further(Annotated):
        def __init__(self, scale: float) -> None:
            super().__init__(normal(4, 3) * scale, normal(3, 3))
            self.weight = torch.tensor(scale)

        def expand(self, batch_shape, _instance=None):
            made = self._get_checked_instance(Further, _instance)
            return super().expand(batch_shape, _instance=made)

    made = Further(2.0).condition(torch.full((5, 4), -1))
    assert type(made) is Further
    assert torch.equal(made.weight, torch.full((5,), 2.0))
