"""The contract of `torch.distributions.Distribution`, over a grid of sample and batch shapes."""

import math

import pytest
import torch
from torch.distributions import Distribution, Independent, constraints, kl_divergence
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import BATCH_SHAPES, FORMS, Example, over_examples, random_example, seeded
from tests.quantities import QUANTITIES

SAMPLE_SHAPES = [(), (4,), (2, 3), (0,), (1,)]
over_sample_shapes = pytest.mark.parametrize("sample_shape", SAMPLE_SHAPES)
over_batch_shapes = pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
over_forms = pytest.mark.parametrize("form", FORMS)
NUM_STEPS, NUM_STATES = 4, 3


def make(batch_shape: tuple = (5,), form: str = "shared", **options) -> LinearChainCRF:
    return random_example("contract", batch_shape, form, ends=True, seed=1).crf(**options)


# Shapes --------------------------------------------------------------------------------------


@over_batch_shapes
@over_forms
def test_batch_and_event_shape(batch_shape: tuple, form: str):
    crf = make(batch_shape, form)
    assert isinstance(crf, Distribution)
    assert crf.batch_shape == torch.Size(batch_shape)
    assert crf.event_shape == (NUM_STEPS, NUM_STATES)


@over_sample_shapes
@over_batch_shapes
@over_forms
def test_sample_shapes(sample_shape: tuple, batch_shape: tuple, form: str):
    crf = make(batch_shape, form)
    event_shape = sample_shape + batch_shape + (NUM_STEPS, NUM_STATES)
    assert crf.sample(sample_shape).shape == event_shape
    assert crf.sample(torch.Size(sample_shape)).shape == event_shape
    assert crf.rsample(sample_shape).shape == event_shape
    assert crf.rsample(sample_shape, straight_through=True).shape == event_shape
    assert crf.perturb_and_map(sample_shape).shape == event_shape
    assert crf.perturb_and_map(sample_shape, perturb="nodes").shape == event_shape
    assert crf.sample_paths(sample_shape).shape == event_shape[:-1]


@over_sample_shapes
@over_batch_shapes
@over_forms
def test_log_prob_and_support_shapes(sample_shape: tuple, batch_shape: tuple, form: str):
    crf = make(batch_shape, form)
    events = crf.sample(sample_shape)
    log_prob = crf.log_prob(events)
    assert log_prob.shape == sample_shape + batch_shape
    assert_close(log_prob, crf.log_prob(events.argmax(-1)))
    assert crf.support.check(events).shape == sample_shape + batch_shape
    assert crf.support.check(events).all()


@over_batch_shapes
@over_forms
def test_shapes_of_answers(batch_shape: tuple, form: str):
    crf = make(batch_shape, form)
    per_chain = [crf.log_partition, crf.entropy(), crf.renyi_entropy(2), crf.cross_entropy(crf)]
    assert all(x.shape == batch_shape for x in per_chain)
    per_state = [crf.mean, crf.marginals, crf.variance, crf.stddev, crf.mode]
    assert all(x.shape == (*batch_shape, NUM_STEPS, NUM_STATES) for x in per_state)
    assert crf.edge_marginals.shape == (*batch_shape, NUM_STEPS - 1, NUM_STATES, NUM_STATES)
    assert crf.argmax.shape == (*batch_shape, NUM_STEPS)
    assert crf.topk(2).paths.shape == (2, *batch_shape, NUM_STEPS)
    assert crf.topk(2).log_probs.shape == (2, *batch_shape)


def test_value_broadcasts_with_the_batch():
    crf = make((2, 3))
    path = torch.zeros(NUM_STEPS, dtype=torch.long)
    assert_close(crf.log_prob(path), crf.log_prob(path.expand(2, 3, -1)))


@pytest.mark.parametrize("batch_shape", [(0,), (2, 0)])
def test_empty_batch(batch_shape: tuple):
    crf = LinearChainCRF(torch.zeros(*batch_shape, 4, 3), torch.zeros(3, 3))
    assert crf.log_partition.shape == batch_shape
    assert crf.sample((2,)).shape == (2, *batch_shape, 4, 3)
    assert crf.rsample((2,)).shape == (2, *batch_shape, 4, 3)
    assert crf.argmax.shape == (*batch_shape, 4)


# Expand --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("small", "large"), [((), (5,)), ((), (2, 3)), ((3,), (2, 3))])
@over_forms
def test_expand_equals_a_repeat(small: tuple, large: tuple, form: str):
    crf = random_example("small", small, form, ends=True, seed=2).crf()
    grown = crf.expand(large)
    assert isinstance(grown, LinearChainCRF)
    assert grown.batch_shape == large
    for ask in (lambda d: d.log_partition, lambda d: d.mean, lambda d: d.entropy()):
        expected = ask(crf).expand(large + ask(crf).shape[len(small) :])
        assert_close(ask(grown), expected)
    assert grown.support.check(grown.sample((4,))).all()
    assert_close(grown.log_prob(crf.argmax), crf.log_prob(crf.argmax).expand(large))


def test_expanded_chains_draw_independently():
    crf = LinearChainCRF(torch.zeros(8, 3), torch.zeros(3, 3)).expand((64,))
    assert len(crf.sample_paths(generator=seeded(1)).unique(dim=0)) > 55
    assert len(crf.rsample(generator=seeded(1)).argmax(-1).unique(dim=0)) > 55


def test_expand_to_size_one_dimensions():
    crf = random_example("ones", (1, 3), "per_chain", seed=3).crf()
    assert_close(crf.expand((2, 3)).log_partition, crf.log_partition.expand(2, 3))


# Support and constraints ---------------------------------------------------------------------


def test_support_knows_the_lengths():
    crf = LinearChainCRF(torch.zeros(3, 2, 2), torch.zeros(2, 2), torch.tensor([2, 1, 0]))
    event = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    assert crf.support.check(event).tolist() == [False, True, False]
    assert crf.support.check(torch.zeros(2, 2)).tolist() == [False, False, True]
    assert crf.support.check(torch.eye(2)).tolist() == [True, False, False]
    assert not crf.support.check(torch.full((2, 2), 0.5)).any()
    assert not crf.support.check(torch.zeros(3, 3, 2)).any()


def test_support_is_discrete_over_two_dimensions():
    support = make().support
    assert isinstance(support, constraints.Constraint)
    assert support.is_discrete
    assert support.event_dim == 2
    assert "T=4" in repr(support)


def test_arg_constraints_and_flags():
    crf = make()
    assert set(crf.arg_constraints) == {"emissions", "transitions", "start", "end"}
    assert all(constraints.is_dependent(c) for c in crf.arg_constraints.values())
    assert all(hasattr(crf, name) for name in crf.arg_constraints)
    assert crf.has_rsample
    assert crf.has_enumerate_support


def test_repr_is_short():
    assert repr(make((2, 3))) == "LinearChainCRF(batch_shape=(2, 3), T=4, K=3)"


@pytest.mark.parametrize("length", [0, 1, 3])
@over_batch_shapes
def test_enumerate_support(batch_shape: tuple, length: int):
    crf = LinearChainCRF(
        torch.randn(*batch_shape, 3, 2), torch.randn(2, 2), torch.full(batch_shape, length)
    )
    events = crf.enumerate_support()
    assert events.shape == (2**length, *batch_shape, 3, 2)
    assert crf.support.check(events).all()
    assert len(events.unique(dim=0)) == 2**length
    assert_close(crf.log_prob(events).exp().sum(0), torch.ones(batch_shape))
    narrow = crf.enumerate_support(expand=False)
    assert narrow.shape == (2**length, *(1,) * len(batch_shape), 3, 2)
    assert torch.equal(narrow.expand_as(events), events)


def test_unequal_lengths_have_no_common_support():
    with pytest.raises(NotImplementedError, match="length"):
        make((5,)).enumerate_support()


# Validation ----------------------------------------------------------------------------------

BAD = torch.full((4, 3), math.nan)


@pytest.fixture
def default_validation():
    before = Distribution._validate_args
    yield Distribution.set_default_validate_args
    Distribution.set_default_validate_args(before)


def test_validate_args_true_and_false(default_validation):
    for default in (True, False):
        default_validation(default)
        with pytest.raises(ValueError, match="emissions"):
            LinearChainCRF(BAD, torch.zeros(3, 3), validate_args=True)
        LinearChainCRF(BAD, torch.zeros(3, 3), validate_args=False)


def test_validate_args_none_follows_the_default(default_validation):
    default_validation(False)
    LinearChainCRF(BAD, torch.zeros(3, 3))
    default_validation(True)
    with pytest.raises(ValueError, match="emissions"):
        LinearChainCRF(BAD, torch.zeros(3, 3))


def test_validation_is_inherited():
    """By `expand`, `condition` and `restrict`; log_prob obeys it too."""
    wrong = torch.full((4,), 7)
    observed, allowed = torch.full((4,), -1), torch.ones(4, 3, dtype=torch.bool)
    crf = LinearChainCRF(torch.zeros(4, 3), torch.zeros(3, 3), validate_args=True)
    for child in (crf, crf.expand((2,)), crf.condition(observed), crf.restrict(allowed)):
        with pytest.raises(ValueError, match="value"):
            child.log_prob(wrong)


def test_validation_changes_no_value():
    on, off = make(validate_args=True), make(validate_args=False)
    for ask in QUANTITIES.values():
        assert torch.equal(ask(on), ask(off))


# Neighbours in torch.distributions -----------------------------------------------------------


def test_moments_fit_together():
    crf = make((2, 3), "per_step")
    assert_close(crf.variance, crf.mean - crf.mean**2)
    assert_close(crf.stddev, crf.variance.sqrt())
    assert_close(crf.mode.argmax(-1), crf.argmax)
    assert crf.support.check(crf.mode).all()
    assert_close(crf.perplexity(), crf.entropy().exp())


def test_kl_divergence_is_registered():
    p, q = make((2, 3), "shared"), make((2, 3), "per_step")
    assert_close(kl_divergence(p, q), p.cross_entropy(q) - p.entropy())


def test_independent():
    crf = make((2, 3))
    joint = Independent(crf, 1)
    assert joint.batch_shape == (2,)
    assert joint.event_shape == (3, NUM_STEPS, NUM_STATES)
    events = joint.sample((4,))
    assert_close(joint.log_prob(events), crf.log_prob(events).sum(-1))
    assert_close(joint.entropy(), crf.entropy().sum(-1))
    assert joint.rsample((4,)).shape == (4, 2, 3, NUM_STEPS, NUM_STATES)
    assert joint.support.check(events).all()
    assert_close(kl_divergence(joint, joint), torch.zeros(2, dtype=torch.float64))


def test_parameters_are_broadcast_to_the_batch_shape():
    crf = make((2, 3), "shared")
    assert crf.emissions.shape == (2, 3, NUM_STEPS, NUM_STATES)
    assert crf.lengths.shape == (2, 3)
    assert crf.start.shape == crf.end.shape == (2, 3, NUM_STATES)
    assert random_example().crf().start is None


@over_examples
def test_answers_have_the_batch_shape_of_the_example(example: Example):
    crf = example.crf()
    assert crf.log_partition.shape == example.oracle().batch_shape
