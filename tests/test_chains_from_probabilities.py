"""Chains made from probabilities: posteriors of hidden Markov models, and Markov priors."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, kl_divergence
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import seeded

NUM_STATES, NUM_STEPS = 3, 4
LENGTHS = torch.tensor([4, 0, 1, 3, 2])
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64)


def log_probs(*shape: int, seed: int = 0) -> Tensor:
    return normal(*shape, seed=seed).log_softmax(-1)


INITIAL, TRANSITION = log_probs(NUM_STATES, seed=1), log_probs(NUM_STATES, NUM_STATES, seed=2)
OBSERVATION = normal(len(LENGTHS), NUM_STEPS, NUM_STATES, seed=3)


def hmm(initial: Tensor, transition: Tensor, **options) -> LinearChainCRF:
    observation = torch.zeros(5, NUM_STEPS, initial.shape[-1], dtype=initial.dtype)
    return LinearChainCRF.from_hmm(initial, transition, observation, LENGTHS, **options)


def markov(initial: Tensor, transition: Tensor, **options) -> LinearChainCRF:
    return LinearChainCRF.markov(initial, transition, NUM_STEPS, LENGTHS, **options)


Maker = Callable[..., LinearChainCRF]
both = pytest.mark.parametrize("make", [hmm, markov])


# What counts as log probabilities ------------------------------------------------------------

WRONG = {
    "raw": lambda x: torch.rand(x.shape, generator=seeded(0)),
    "scores": lambda x: normal(*x.shape),
    "probabilities": lambda x: x.exp(),
    "nothing at all": lambda x: torch.full_like(x, -torch.inf),
    "one short": lambda x: x - 0.01,
}


@both
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["initial", "transition"])
def test_what_is_no_log_probability_is_refused(make: Maker, wrong: str, name: str):
    given = {"initial": INITIAL, "transition": TRANSITION}
    given[name] = WRONG[wrong](given[name])
    with pytest.raises(ValueError, match=f"^{name} must hold log probabilities"):
        make(**given)


@both
def test_one_bad_row_is_enough(make: Maker):
    transition = TRANSITION.clone()
    transition[1, 2] += 0.5
    with pytest.raises(ValueError, match=r"^transition must hold log probabilities"):
        make(INITIAL, transition)


@both
def test_transitions_from_the_columns_are_refused(make: Maker):
    """Rows are where a move comes from: their sum over where it goes to is 1."""
    with pytest.raises(ValueError, match=r"^transition must hold log probabilities"):
        make(INITIAL, TRANSITION.T)


@both
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_states", [2, 30, 500])
@pytest.mark.parametrize("scale", [0.0, 1.0, 20.0])
def test_log_softmax_passes_in_every_precision(
    make: Maker, dtype: torch.dtype, num_states: int, scale: float
):
    initial = (normal(num_states) * scale).to(dtype).log_softmax(-1)
    transition = (normal(num_states, num_states) * scale).to(dtype).log_softmax(-1)
    dist = make(initial, transition)
    assert dist.log_partition.dtype == torch.promote_types(dtype, torch.float32)


@both
def test_forbidden_moves_pass(make: Maker):
    """A chain from left to right that ends in a state it never leaves."""
    initial = torch.tensor([1.0, 0.0, 0.0]).log()
    transition = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]).log()
    dist = make(initial, transition)
    assert_close(dist.log_partition, torch.zeros(5))
    paths = dist.sample_paths((50,), generator=seeded(0))
    inside = torch.arange(1, NUM_STEPS) < LENGTHS[:, None]
    moves = paths.diff(dim=-1)[inside.expand(50, -1, -1)]
    assert ((moves == 0) | (moves == 1)).all()


@both
def test_validation_can_be_skipped(make: Maker):
    raw = torch.rand(NUM_STATES), torch.rand(NUM_STATES, NUM_STATES)
    make(*raw, validate_args=False)
    Distribution.set_default_validate_args(False)
    make(*raw)
    with pytest.raises(ValueError, match="log probabilities"):
        make(*raw, validate_args=True)


@both
@pytest.mark.parametrize("name", ["initial", "transition"])
@pytest.mark.parametrize("wrong", [lambda x: x.tolist(), lambda x: x.long()])
def test_bad_kinds_are_named(make: Maker, name: str, wrong: Callable):
    given = {"initial": INITIAL, "transition": TRANSITION}
    given[name] = wrong(given[name])
    observation = {"observation": OBSERVATION} if make is hmm else {"num_steps": NUM_STEPS}
    method = LinearChainCRF.from_hmm if make is hmm else LinearChainCRF.markov
    with pytest.raises(ValueError, match=f"^{name} must be"):
        method(**given, **observation)


@both
def test_a_subclass_makes_its_own(make: Maker):
    class Tagging(LinearChainCRF):
        pass

    if make is hmm:
        assert type(Tagging.from_hmm(INITIAL, TRANSITION, OBSERVATION)) is Tagging
    else:
        assert type(Tagging.markov(INITIAL, TRANSITION, NUM_STEPS)) is Tagging


def test_where_numbers_cannot_be_looked_at():
    meta = INITIAL.to("meta"), TRANSITION.to("meta")
    assert LinearChainCRF.markov(*meta, NUM_STEPS).entropy().is_meta
    initials, transitions = log_probs(2, NUM_STATES), log_probs(2, NUM_STATES, NUM_STATES)

    def entropy(initial: Tensor, transition: Tensor) -> Tensor:
        return LinearChainCRF.markov(initial, transition, NUM_STEPS).entropy()

    mapped = torch.func.vmap(entropy)(initials, transitions)
    assert_close(mapped, entropy(initials, transitions))


# Markov chains -------------------------------------------------------------------------------


def by_hand(initial: Tensor, transition: Tensor, path: list[int]) -> Tensor:
    """The log probability of a path, move by move; that of an empty one is 0."""
    total = torch.zeros((), dtype=initial.dtype)
    for step, state in enumerate(path):
        total = total + (initial[state] if step == 0 else transition[path[step - 1], state])
    return total


def entropy_by_hand(initial: Tensor, transition: Tensor, length: int) -> Tensor:
    """The entropy of the first state, and that of each move from where the chain may be."""
    occupied, moves = initial.exp(), Categorical(logits=transition).entropy()
    total = torch.zeros((), dtype=initial.dtype)
    for step in range(length):
        if step == 0:
            total = total + Categorical(logits=initial).entropy()
        else:
            total = total + occupied @ moves
            occupied = occupied @ transition.exp()
    return total


def test_markov_is_normalised_at_every_length():
    prior = markov(INITIAL, TRANSITION)
    assert (prior.batch_shape, prior.event_shape) == ((5,), (NUM_STEPS, NUM_STATES))
    assert_close(prior.log_partition, torch.zeros(5).double())
    whole = LinearChainCRF.markov(INITIAL, TRANSITION, NUM_STEPS)
    assert whole.batch_shape == ()
    assert_close(whole.log_prob(whole.enumerate_support()).exp().sum(), torch.ones(()).double())


def test_markov_log_prob_is_the_sum_along_the_path():
    prior = markov(INITIAL, TRANSITION)
    paths = torch.randint(NUM_STATES, (20, 5, NUM_STEPS), generator=seeded(4))
    wanted = [
        by_hand(INITIAL, TRANSITION, path[:length].tolist())
        for draw in paths
        for path, length in zip(draw, LENGTHS, strict=True)
    ]
    assert_close(prior.log_prob(paths), torch.stack(wanted).view(20, 5))


def test_markov_entropy():
    wanted = [entropy_by_hand(INITIAL, TRANSITION, n) for n in LENGTHS.tolist()]
    assert_close(markov(INITIAL, TRANSITION).entropy(), torch.stack(wanted))


def test_entropy_of_a_noisy_switch():
    """It stays as it is nine times of ten, so that every move has the same entropy."""
    initial = torch.tensor([0.5, 0.5], dtype=torch.float64).log()
    transition = torch.tensor([[0.9, 0.1], [0.1, 0.9]], dtype=torch.float64).log()
    each_move = -0.9 * math.log(0.9) - 0.1 * math.log(0.1)
    lengths = torch.tensor([0, 1, 2, 100])
    switch = LinearChainCRF.markov(initial, transition, 100, lengths)
    wanted = [0.0] + [math.log(2) + (n - 1) * each_move for n in (1, 2, 100)]
    assert_close(switch.entropy(), torch.tensor(wanted, dtype=torch.float64))


def test_markov_marginals_are_powers_of_the_transition():
    prior = LinearChainCRF.markov(INITIAL, TRANSITION, NUM_STEPS)
    occupied = INITIAL.exp()
    for step in range(NUM_STEPS):
        assert_close(prior.marginals[step], occupied)
        occupied = occupied @ TRANSITION.exp()


@pytest.mark.parametrize("shape", [(), (5,), (5, NUM_STEPS - 1)], ids=str)
@pytest.mark.parametrize("batch_shape", [(), (5,)], ids=str)
def test_markov_takes_every_form_of_transitions(shape: tuple, batch_shape: tuple):
    initial = log_probs(*batch_shape, NUM_STATES)
    transition = log_probs(*shape, NUM_STATES, NUM_STATES)
    prior = markov(initial, transition)
    assert prior.batch_shape == (5,)
    assert_close(prior.log_partition, torch.zeros(5).double())


def test_markov_over_one_step_is_a_categorical():
    prior = LinearChainCRF.markov(INITIAL, TRANSITION, 1)
    assert_close(prior.entropy(), Categorical(logits=INITIAL).entropy())
    assert_close(prior.log_prob(torch.arange(NUM_STATES)[:, None]), INITIAL)


@pytest.mark.parametrize("num_steps", [0, -1, 2.0, True, None, "4", torch.tensor(4)])
def test_bad_num_steps(num_steps: object):
    with pytest.raises(ValueError, match=r"^num_steps must be an integer"):
        LinearChainCRF.markov(INITIAL, TRANSITION, num_steps)


@pytest.mark.parametrize("lengths", [torch.tensor([5]), torch.tensor([-1]), torch.tensor([1.0])])
def test_bad_lengths(lengths: Tensor):
    with pytest.raises(ValueError, match=r"^lengths must"):
        LinearChainCRF.markov(INITIAL, TRANSITION, NUM_STEPS, lengths)


def test_gradients_reach_the_logits_as_by_hand():
    """Behind a log_softmax, log Z is constant, and has no part in the gradient."""
    initial = normal(NUM_STATES, seed=5).requires_grad_()
    transition = normal(NUM_STATES, NUM_STATES, seed=6).requires_grad_()
    path = [2, 0, 1, 1]
    as_log_probs = initial.log_softmax(-1), transition.log_softmax(-1)
    prior = LinearChainCRF.markov(*as_log_probs, NUM_STEPS)
    found = torch.autograd.grad(
        prior.log_prob(torch.tensor(path)), (initial, transition), retain_graph=True
    )
    wanted = torch.autograd.grad(by_hand(*as_log_probs, path), (initial, transition))
    assert_close(found, wanted)
    assert all(grad.abs().sum() > 0.1 for grad in found)


def test_gradients_of_the_entropy_are_as_by_hand():
    initial = normal(NUM_STATES, seed=5).requires_grad_()
    transition = normal(NUM_STATES, NUM_STATES, seed=6).requires_grad_()
    as_log_probs = initial.log_softmax(-1), transition.log_softmax(-1)
    prior = LinearChainCRF.markov(*as_log_probs, NUM_STEPS)
    found = torch.autograd.grad(prior.entropy(), (initial, transition), retain_graph=True)
    wanted = entropy_by_hand(*as_log_probs, NUM_STEPS)
    assert_close(found, torch.autograd.grad(wanted, (initial, transition)))


# Posteriors, and divergences from the prior --------------------------------------------------


def log_evidence(observation: Tensor, length: int) -> Tensor:
    """The log probability of what was observed, by the forward algorithm on plain probabilities."""
    if length == 0:
        return torch.zeros((), dtype=observation.dtype)
    reached = INITIAL.exp() * observation[0].exp()
    for step in range(1, length):
        reached = reached @ TRANSITION.exp() * observation[step].exp()
    return reached.sum().log()


def test_hmm_log_partition_is_the_log_evidence_at_every_length():
    posterior = LinearChainCRF.from_hmm(INITIAL, TRANSITION, OBSERVATION, LENGTHS)
    wanted = [log_evidence(x, n) for x, n in zip(OBSERVATION, LENGTHS.tolist(), strict=True)]
    assert_close(posterior.log_partition, torch.stack(wanted))


def test_hmm_without_evidence_is_the_markov_chain():
    silent = LinearChainCRF.from_hmm(INITIAL, TRANSITION, torch.zeros_like(OBSERVATION), LENGTHS)
    prior = markov(INITIAL, TRANSITION)
    assert_close(silent.marginals, prior.marginals)
    assert_close(kl_divergence(silent, prior), torch.zeros(5).double())


def test_hmm_gradients_reach_everything():
    leaves = [x.clone().requires_grad_() for x in (INITIAL, TRANSITION, OBSERVATION)]
    LinearChainCRF.from_hmm(*leaves, LENGTHS).log_partition.sum().backward()
    for leaf in leaves:
        assert leaf.grad.isfinite().all()
        assert leaf.grad.any()


def test_kl_from_posterior_to_prior():
    """It is the expected log probability of the observations, less the log evidence."""
    posterior = LinearChainCRF.from_hmm(INITIAL, TRANSITION, OBSERVATION, LENGTHS)
    divergence = kl_divergence(posterior, markov(INITIAL, TRANSITION))
    assert_close(divergence, posterior.expectation(OBSERVATION) - posterior.log_partition)
    assert (divergence[LENGTHS > 0] > 0.01).all()
    assert divergence[LENGTHS == 0] == 0


def test_kl_of_any_chain_to_a_prior_trains_both():
    leaves = [OBSERVATION.clone().requires_grad_(), TRANSITION.clone().requires_grad_()]
    logits = [normal(NUM_STATES, seed=7), normal(NUM_STATES, NUM_STATES, seed=8)]
    leaves += [x.requires_grad_() for x in logits]
    emissions, transitions, *logits = leaves
    posterior = LinearChainCRF(emissions, transitions, LENGTHS)
    prior = markov(*[x.log_softmax(-1) for x in logits])
    divergence = kl_divergence(posterior, prior)
    assert_close(divergence, posterior.cross_entropy(prior) - posterior.entropy())
    divergence.sum().backward()
    for leaf in leaves:
        assert leaf.grad.isfinite().all()
        assert leaf.grad.any()


def test_kl_to_a_prior_that_forbids():
    left_to_right = torch.ones(NUM_STATES, NUM_STATES).triu().log().log_softmax(-1).double()
    prior = markov(INITIAL, left_to_right)
    free = LinearChainCRF(OBSERVATION, TRANSITION, LENGTHS)
    assert_close(kl_divergence(free, prior).isinf(), LENGTHS > 1)
    within = LinearChainCRF.from_hmm(INITIAL, left_to_right, OBSERVATION, LENGTHS)
    assert kl_divergence(within, prior).isfinite().all()


def test_kl_between_unequal_lengths_says_how_to_mend_it():
    posterior = LinearChainCRF.from_hmm(INITIAL, TRANSITION, OBSERVATION, LENGTHS)
    with pytest.raises(ValueError, match=r"make both with the same lengths="):
        kl_divergence(posterior, LinearChainCRF.markov(INITIAL, TRANSITION, NUM_STEPS))
    mended = LinearChainCRF.markov(INITIAL, TRANSITION, NUM_STEPS, posterior.lengths)
    assert kl_divergence(posterior, mended).isfinite().all()
