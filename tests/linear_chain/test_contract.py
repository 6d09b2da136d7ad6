"""What the contract says of linear chains alone: one-hot rows, states, edges, enumeration."""

import pytest
import torch
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import FORMS, forbid_some, random_example, seeded
from tests.structures.structure import BATCH_SHAPES

over_batch_shapes = pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
over_forms = pytest.mark.parametrize("form", FORMS)
NUM_STEPS, NUM_STATES = 4, 3


def make(batch_shape: tuple = (5,), form: str = "shared", **options) -> LinearChainCRF:
    return random_example("contract", batch_shape, form, ends=True, seed=1).crf(**options)


# Shapes --------------------------------------------------------------------------------------


@over_batch_shapes
@over_forms
def test_shapes_are_steps_and_states(batch_shape: tuple, form: str):
    crf = make(batch_shape, form)
    assert crf.event_shape == (NUM_STEPS, NUM_STATES)
    assert crf.edge_marginals.shape == (*batch_shape, NUM_STEPS - 1, NUM_STATES, NUM_STATES)
    assert_close(crf.mode.argmax(-1), crf.argmax)


@pytest.mark.parametrize("sample_shape", [(), (4,), (2, 3), (0,), (1,)])
@over_batch_shapes
@over_forms
def test_paths_are_the_argmax_of_events(sample_shape: tuple, batch_shape: tuple, form: str):
    crf = make(batch_shape, form)
    events = crf.sample(sample_shape)
    assert_close(crf.log_prob(events), crf.log_prob(events.argmax(-1)))


def test_parameters_are_broadcast_to_the_batch_shape():
    crf = make((2, 3), "shared")
    assert crf.emissions.shape == (2, 3, NUM_STEPS, NUM_STATES)
    assert crf.lengths.shape == (2, 3)
    assert crf.start.shape == crf.end.shape == (2, 3, NUM_STATES)
    assert random_example().crf().start is None


@pytest.mark.parametrize("batch_shape", [(0,), (2, 0)])
def test_empty_batch_of_shared_transitions(batch_shape: tuple):
    crf = LinearChainCRF(torch.zeros(*batch_shape, 4, 3), torch.zeros(3, 3))
    assert crf.log_partition.shape == batch_shape
    assert crf.sample((2,)).shape == (2, *batch_shape, 4, 3)
    assert crf.rsample((2,)).shape == (2, *batch_shape, 4, 3)
    assert crf.argmax.shape == (*batch_shape, 4)


def test_any_path_broadcasts_with_the_batch():
    crf = make((2, 3))
    path = torch.zeros(NUM_STEPS, dtype=torch.long)
    assert_close(crf.log_prob(path), crf.log_prob(path.expand(2, 3, -1)))


def test_expanding_transitions_of_each_chain():
    crf = random_example("ones", (1, 3), "per_chain", seed=3).crf()
    assert_close(crf.expand((2, 3)).log_partition, crf.log_partition.expand(2, 3))


def test_expanded_chains_draw_independently():
    crf = LinearChainCRF(torch.zeros(8, 3), torch.zeros(3, 3)).expand((64,))
    assert len(crf.sample_paths(generator=seeded(1)).unique(dim=0)) > 55
    assert len(crf.rsample(generator=seeded(1)).argmax(-1).unique(dim=0)) > 55


# Support -------------------------------------------------------------------------------------


def test_support_knows_the_lengths():
    crf = LinearChainCRF(torch.zeros(3, 2, 2), torch.zeros(2, 2), torch.tensor([2, 1, 0]))
    event = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    assert crf.support.check(event).tolist() == [False, True, False]
    assert crf.support.check(torch.zeros(2, 2)).tolist() == [False, False, True]
    assert crf.support.check(torch.eye(2)).tolist() == [True, False, False]
    assert not crf.support.check(torch.full((2, 2), 0.5)).any()
    assert not crf.support.check(torch.zeros(3, 3, 2)).any()


def test_descriptions_are_short():
    assert repr(make((2, 3))) == "LinearChainCRF(batch_shape=(2, 3), T=4, K=3)"
    assert "T=4" in repr(make().support)


def test_names_of_arguments_and_flags():
    crf = make()
    assert set(crf.arg_constraints) == {"emissions", "transitions", "start", "end"}
    assert crf.has_rsample
    assert crf.has_enumerate_support


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


def test_forbidden_events_of_the_support_have_no_nan_gradient():
    plain = random_example("half", (), lengths=None, ends=True, seed=10)
    leaf = forbid_some(plain, seed=3).leaves()
    log_probs = leaf.crf().log_prob(leaf.crf().enumerate_support())
    assert log_probs.isinf().any()
    allowed = log_probs[log_probs > -torch.inf].sum()
    grads = torch.autograd.grad(allowed, list(leaf.scores.values()))
    assert all(grad.isfinite().all() for grad in grads)


# Validation ----------------------------------------------------------------------------------


def test_validation_is_inherited():
    """By `expand`, `condition` and `restrict`; log_prob obeys it too."""
    wrong = torch.full((4,), 7)
    observed, allowed = torch.full((4,), -1), torch.ones(4, 3, dtype=torch.bool)
    crf = LinearChainCRF(torch.zeros(4, 3), torch.zeros(3, 3), validate_args=True)
    for child in (crf, crf.expand((2,)), crf.condition(observed), crf.restrict(allowed)):
        with pytest.raises(ValueError, match="value"):
            child.log_prob(wrong)
