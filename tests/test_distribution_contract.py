"""The contract of `torch.distributions.Distribution`, over a grid of sample and batch shapes."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from torch.distributions import Distribution, Independent, constraints, kl_divergence
from torch.testing import assert_close

from structdist import StructuredDistribution
from tests.structures.registry import over
from tests.structures.structure import BATCH_SHAPES, BaseExample, Structure, seeded

SAMPLE_SHAPES = [(), (4,), (2, 3), (0,), (1,)]


def make(
    structure: Structure, batch_shape: tuple = (5,), form: str | None = None, **options
) -> StructuredDistribution:
    return structure.random("contract", batch_shape, form, seed=1).crf(**options)


def without_batch(structure: Structure) -> StructuredDistribution:
    return structure.random("single", (), lengths=None, seed=1).crf()


# Shapes --------------------------------------------------------------------------------------


@over(form="forms", batch_shape=BATCH_SHAPES)
def test_batch_and_event_shape(structure: Structure, batch_shape: tuple, form: str):
    crf = make(structure, batch_shape, form)
    oracle = structure.random("contract", batch_shape, form, seed=1).oracle()
    assert isinstance(crf, Distribution)
    assert crf.batch_shape == torch.Size(batch_shape)
    assert crf.event_shape == oracle.event_shape


@over(form="forms", batch_shape=BATCH_SHAPES, sample_shape=SAMPLE_SHAPES)
def test_sample_shapes(structure: Structure, sample_shape: tuple, batch_shape: tuple, form: str):
    crf = make(structure, batch_shape, form)
    event_shape = sample_shape + batch_shape + crf.event_shape
    assert crf.sample(sample_shape).shape == event_shape
    assert crf.sample(torch.Size(sample_shape)).shape == event_shape
    for draw in structure.relaxations.values():
        assert draw(crf, sample_shape).shape == event_shape
        assert draw(crf, sample_shape, straight_through=True).shape == event_shape
    path_shape = sample_shape + batch_shape + crf.event_shape[:1]
    assert crf.sample_paths(sample_shape).shape == path_shape
    assert crf.rsample_with_paths(sample_shape).paths.shape == path_shape
    paths, log_prob = crf.sample_with_log_prob(sample_shape)
    assert paths.shape == path_shape
    assert log_prob.shape == sample_shape + batch_shape


@over(form="forms", batch_shape=BATCH_SHAPES, sample_shape=SAMPLE_SHAPES)
def test_log_prob_and_support_shapes(
    structure: Structure, sample_shape: tuple, batch_shape: tuple, form: str
):
    crf = make(structure, batch_shape, form)
    paths = crf.sample_paths(sample_shape)
    events = crf.event_of(paths)
    log_prob = crf.log_prob(events)
    assert log_prob.shape == sample_shape + batch_shape
    assert_close(log_prob, crf.log_prob(paths))
    assert crf.support.check(events).shape == sample_shape + batch_shape
    assert crf.support.check(events).all()


@over(form="forms", batch_shape=BATCH_SHAPES)
def test_shapes_of_answers(structure: Structure, batch_shape: tuple, form: str):
    crf = make(structure, batch_shape, form)
    scalars = [crf.log_partition, crf.entropy(), crf.renyi_entropy(2), crf.cross_entropy(crf)]
    assert all(x.shape == batch_shape for x in scalars)
    events = [crf.mean, crf.marginals, crf.variance, crf.stddev, crf.mode]
    assert all(x.shape == batch_shape + crf.event_shape for x in events)
    num_steps = crf.event_shape[0]
    assert crf.argmax.shape == (*batch_shape, num_steps)
    assert crf.topk(2).paths.shape == (2, *batch_shape, num_steps)
    assert crf.topk(2).log_probs.shape == (2, *batch_shape)


@over()
def test_value_broadcasts_with_the_batch(structure: Structure):
    crf = structure.random("full", (2, 3), lengths=None, seed=1).crf()
    path = crf.argmax[0, 0]
    assert_close(crf.log_prob(path), crf.log_prob(path.expand(2, 3, -1)))


@over(batch_shape=[(0,), (2, 0)])
def test_empty_batch(structure: Structure, batch_shape: tuple):
    crf = structure.random("empty", batch_shape, lengths=None).crf()
    event_shape = crf.event_shape
    assert crf.log_partition.shape == batch_shape
    assert crf.sample((2,)).shape == (2, *batch_shape, *event_shape)
    assert crf.rsample((2,)).shape == (2, *batch_shape, *event_shape)
    assert crf.argmax.shape == (*batch_shape, event_shape[0])


# Others of its kind --------------------------------------------------------------------------


@over(form="forms", shapes=[((), (5,)), ((), (2, 3)), ((3,), (2, 3))])
def test_expand_equals_a_repeat(structure: Structure, shapes: tuple, form: str):
    small, large = shapes
    crf = structure.random("small", small, form, seed=2).crf()
    grown = crf.expand(large)
    assert type(grown) is type(crf)
    assert grown.batch_shape == large
    for ask in (lambda d: d.log_partition, lambda d: d.mean, lambda d: d.entropy()):
        expected = ask(crf).expand(large + ask(crf).shape[len(small) :])
        assert_close(ask(grown), expected)
    assert grown.support.check(grown.sample((4,))).all()
    assert_close(grown.log_prob(crf.argmax), crf.log_prob(crf.argmax).expand(large))


@over()
def test_expand_to_size_one_dimensions(structure: Structure):
    crf = structure.random("ones", (1, 3), seed=3).crf()
    assert_close(crf.expand((2, 3)).log_partition, crf.log_partition.expand(2, 3))


COPIES: dict[str, Callable] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda d: pickle.loads(pickle.dumps(d)),
}


@over(duplicate=COPIES)
def test_copies_answer_alike(structure: Structure, duplicate: Callable):
    """Before and after the forward pass has run."""
    crf = make(structure)
    fresh = duplicate(crf)
    expected = crf.entropy(), crf.mean, crf.argmax
    used = duplicate(crf)
    for other in (fresh, used):
        assert type(other) is type(crf)
        assert other.batch_shape == crf.batch_shape
        assert_close((other.entropy(), other.mean, other.argmax), expected)


@over()
def test_a_copy_of_leaves_keeps_the_graph(structure: Structure):
    leaf = structure.random("leaf", (2,), seed=4).leaves()
    answer = copy.copy(leaf.crf()).log_partition.sum()
    grads = torch.autograd.grad(answer, list(leaf.scores.values()))
    assert all(grad.abs().sum() > 0 for grad in grads)


@over()
def test_relaxed_and_straight_through_types(structure: Structure):
    """They carry a temperature, and answer as the distribution itself does."""
    crf = make(structure)
    relaxed, straight = crf.relaxed(0.5), crf.straight_through(0.5)
    for other in (relaxed, straight):
        assert (other.batch_shape, other.event_shape) == (crf.batch_shape, crf.event_shape)
        assert other.expand((2, 5)).rsample((3,)).shape == (3, 2, 5, *crf.event_shape)
        assert other.support.event_dim == len(crf.event_shape)
        assert repr(crf) in repr(other)
    assert relaxed.support.check(relaxed.rsample((4,))).all()
    assert straight.support.check(straight.rsample((4,))).all()
    assert straight.support.check(straight.sample((4,))).all()
    assert_close(straight.log_prob(crf.mode), crf.log_prob(crf.argmax))
    assert_close(straight.entropy(), crf.entropy())
    assert_close(kl_divergence(straight, straight), torch.zeros_like(crf.entropy()))
    with pytest.raises(NotImplementedError, match="log_prob"):
        relaxed.log_prob(relaxed.rsample())


# Support and constraints ---------------------------------------------------------------------


@over(example="drawn")
def test_support_is_that_of_the_paths(structure: Structure, example: BaseExample):
    """Of all paths, those that the structure has are in its support, and no others."""
    crf = example.crf()
    paths = structure.some_paths(crf)
    scoreless = [torch.zeros_like(x) for x in example.scores.values()]
    free = example.with_scores(*scoreless).crf()
    assert torch.equal(crf.support.check(crf.event_of(paths)), free.log_prob(paths) > -torch.inf)
    assert not crf.support.check(torch.full((*crf.batch_shape, *crf.event_shape), 0.5))[
        crf.lengths > 0
    ].any()


@over()
def test_support_is_discrete_over_the_event_dimensions(structure: Structure):
    crf = make(structure)
    assert isinstance(crf.support, constraints.Constraint)
    assert crf.support.is_discrete
    assert crf.support.event_dim == len(crf.event_shape)
    assert not crf.relaxed_support.is_discrete
    assert crf.relaxed_support.event_dim == len(crf.event_shape)


@over()
def test_arg_constraints_and_flags(structure: Structure):
    crf = make(structure)
    assert set(crf.arg_constraints) == set(structure.random("scores").SCORES)
    assert all(constraints.is_dependent(c) for c in crf.arg_constraints.values())
    assert all(hasattr(crf, name) for name in crf.arg_constraints)
    assert crf.has_rsample


@over()
def test_enumerate_support_is_what_the_flag_says(structure: Structure):
    crf = without_batch(structure)
    if crf.has_enumerate_support:
        log_probs = crf.log_prob(crf.enumerate_support())
        assert_close(log_probs.exp().sum(), torch.ones((), dtype=torch.float64))
    else:
        with pytest.raises(NotImplementedError):
            crf.enumerate_support()


# Validation ----------------------------------------------------------------------------------


@pytest.fixture
def default_validation():
    before = Distribution._validate_args
    yield Distribution.set_default_validate_args
    Distribution.set_default_validate_args(before)


def with_nan(structure: Structure) -> BaseExample:
    example = structure.random("nan", (), lengths=None)
    first, *others = example.scores.values()
    return example.with_scores(torch.full_like(first, torch.nan), *others)


@over()
def test_validate_args_true_and_false(structure: Structure, default_validation):
    bad = with_nan(structure)
    for default in (True, False):
        default_validation(default)
        with pytest.raises(ValueError, match=bad.SCORES[0]):
            bad.crf(validate_args=True)
        bad.crf(validate_args=False)


@over()
def test_validate_args_none_follows_the_default(structure: Structure, default_validation):
    bad = with_nan(structure)
    default_validation(False)
    bad.crf()
    default_validation(True)
    with pytest.raises(ValueError, match=bad.SCORES[0]):
        bad.crf()


@over()
def test_validation_changes_no_value(structure: Structure):
    on, off = make(structure, validate_args=True), make(structure, validate_args=False)
    for ask in structure.quantities.values():
        assert torch.equal(ask(on), ask(off))


@over()
def test_nothing_allowed_is_an_error_at_first_use(structure: Structure):
    """It names the batch index; without validation the log partition is -inf."""
    example = structure.random("impossible", (2, 2), lengths=None)
    first, *others = example.scores.values()
    first[1, 0] = -torch.inf
    impossible = example.with_scores(first, *others)
    for ask in (lambda d: d.log_partition, lambda d: d.argmax, lambda d: d.sample()):
        with pytest.raises(ValueError, match=r"\(1, 0\)"):
            ask(impossible.crf(validate_args=True))
    found = impossible.crf(validate_args=False).log_partition
    assert (found == -torch.inf).tolist() == [[False, False], [True, False]]


@over()
def test_strict_log_prob_names_what_is_forbidden(structure: Structure):
    example = structure.forbid_some(structure.random("strict", (2,), lengths=None), seed=3)
    crf = example.crf()
    paths = structure.some_paths(crf)
    forbidden = paths[(crf.log_prob(paths) == -torch.inf).any(-1)][0]
    with pytest.raises(ValueError, match="probability 0 at batch index"):
        crf.log_prob(forbidden, strict=True)
    assert_close(crf.log_prob(crf.argmax, strict=True), crf.log_prob(crf.argmax))


# Neighbours in torch.distributions -----------------------------------------------------------


@over(form="forms")
def test_moments_fit_together(structure: Structure, form: str):
    crf = make(structure, (2, 3), form)
    assert_close(crf.variance, crf.mean - crf.mean**2)
    assert_close(crf.stddev, crf.variance.sqrt())
    assert_close(crf.mode, crf.event_of(crf.argmax))
    assert crf.support.check(crf.mode).all()
    assert_close(crf.perplexity(), crf.entropy().exp())


@over(form="forms")
def test_kl_divergence_is_registered(structure: Structure, form: str):
    p, q = make(structure, (2, 3)), structure.random("q", (2, 3), form, seed=7).crf()
    assert_close(kl_divergence(p, q), p.cross_entropy(q) - p.entropy())


@over()
def test_independent(structure: Structure):
    crf = make(structure, (2, 3))
    joint = Independent(crf, 1)
    assert joint.batch_shape == (2,)
    assert joint.event_shape == (3, *crf.event_shape)
    events = joint.sample((4,))
    assert_close(joint.log_prob(events), crf.log_prob(events).sum(-1))
    assert_close(joint.entropy(), crf.entropy().sum(-1))
    assert joint.rsample((4,)).shape == (4, 2, 3, *crf.event_shape)
    assert joint.support.check(events).all()
    assert_close(kl_divergence(joint, joint), torch.zeros(2, dtype=torch.float64))


@over()
def test_expanded_structures_draw_independently(structure: Structure):
    """With zero scores, hardly any two of 64 long paths are alike."""
    example = structure.random("flat", (), num_steps=8, lengths=None)
    flat = example.with_scores(*[torch.zeros_like(x) for x in example.scores.values()])
    crf = flat.crf().expand((64,))
    assert len(crf.sample_paths(generator=seeded(1)).unique(dim=0)) > 55
    assert len(crf.rsample_with_paths(generator=seeded(1)).paths.unique(dim=0)) > 55
