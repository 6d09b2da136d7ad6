"""`log_prob(value, strict=True)` says what forbids a value; otherwise it is -inf."""

from __future__ import annotations

import pytest
import torch

from structdist import LinearChainCRF
from tests.traps.chains import normal

T, K = 4, 3


def build(forms: str = "shared", **forbidden) -> LinearChainCRF:
    """Two chains over five rows, with -inf at an index of each argument named."""
    shape = {"shared": (K, K), "per_chain": (5, 2, K, K), "per_step": (5, 2, T - 1, K, K)}[forms]
    given = {
        "emissions": normal(5, 2, T, K),
        "transitions": normal(*shape, seed=1),
        "start": normal(5, 2, K, seed=2),
        "end": normal(5, 2, K, seed=3),
    }
    for name, index in forbidden.items():
        given[name][index] = -torch.inf
    return LinearChainCRF(**given)


CASES = {
    "a move of all chains": (
        build(transitions=(0, 2)),
        {(3, 1, 1): 0, (3, 1, 2): 2},
        r"batch index \(3, 1\).*from 0 to 2 into step 2",
    ),
    "a move of one chain": (
        build("per_chain", transitions=(3, 1, 0, 2)),
        {(3, 1, 2): 0, (3, 1, 3): 2},
        r"batch index \(3, 1\).*from 0 to 2 into step 3",
    ),
    "a move at one step": (
        build("per_step", transitions=(3, 1, 0, 0, 2)),
        {(3, 1, 0): 0, (3, 1, 1): 2},
        r"batch index \(3, 1\).*from 0 to 2 into step 1",
    ),
    "a state": (
        build(emissions=(2, 0, 2, 0)),
        {(2, 0, 2): 0},
        r"batch index \(2, 0\).*state 0 at step 2",
    ),
    "a state to start with": (
        build(start=(4, 1, 2)),
        {(4, 1, 0): 2},
        r"batch index \(4, 1\).*state 2 at step 0",
    ),
    "a state to end with": (
        build(end=(4, 1, 2)),
        {(4, 1, 3): 2},
        r"batch index \(4, 1\).*state 2 at step 3",
    ),
}
over_cases = pytest.mark.parametrize(("dist", "places", "message"), CASES.values(), ids=CASES)


def paths_with(places: dict) -> torch.Tensor:
    """State 1 everywhere else."""
    paths = torch.ones(5, 2, T, dtype=torch.long)
    for index, state in places.items():
        paths[index] = state
    return paths


@over_cases
@pytest.mark.parametrize("as_event", [False, True])
def test_the_first_forbidden_step_is_named(backend, dist, places, message, as_event):
    paths = paths_with(places)
    value = dist.event_of(paths) if as_event else paths
    found = dist.log_prob(value)
    index = next(iter(places))[:2]
    assert found[index] == -torch.inf
    assert found.isinf().sum() == 1
    with pytest.raises(ValueError, match=f"value has probability 0 at {message}"):
        dist.log_prob(value, strict=True)


@over_cases
def test_what_is_allowed_passes(backend, dist, places, message):
    paths = paths_with({})
    assert torch.equal(dist.log_prob(paths, strict=True), dist.log_prob(paths))
    assert dist.log_prob(paths).isfinite().all()


@over_cases
def test_samples_pass(dist, places, message):
    drawn = dist.sample_paths((20,), generator=torch.Generator().manual_seed(0))
    assert dist.log_prob(drawn, strict=True).isfinite().all()


def test_the_first_of_several_is_named():
    dist = build(transitions=(0, 2), emissions=(..., 0, 2))
    paths = paths_with({(4, 0, 0): 2, (1, 1, 3): 2, (1, 1, 2): 0, (2, 0, 0): 2})
    with pytest.raises(ValueError, match=r"batch index \(1, 1\).*from 0 to 2 into step 3"):
        dist.log_prob(paths, strict=True)


def test_samples_before_the_batch():
    dist = build(transitions=(0, 2))
    paths = paths_with({}).expand(3, 5, 2, T).clone()
    paths[2, 3, 1, 1], paths[2, 3, 1, 2] = 0, 2
    with pytest.raises(ValueError, match=r"batch index \(3, 1\)"):
        dist.log_prob(paths, strict=True)


def test_a_chain_without_a_batch():
    transitions = torch.zeros(K, K)
    transitions[0, 2] = -torch.inf
    dist = LinearChainCRF(torch.zeros(T, K), transitions)
    with pytest.raises(ValueError, match=r"batch index \(\).*from 0 to 2 into step 1"):
        dist.log_prob(torch.tensor([0, 2, 0, 2]), strict=True)


def test_what_stands_in_the_padding_is_allowed():
    transitions = torch.zeros(K, K)
    transitions[0, 2] = -torch.inf
    dist = LinearChainCRF(torch.zeros(2, T, K), transitions, torch.tensor([2, 0]))
    paths = torch.tensor([[1, 0, 2, 99], [0, 2, 0, 2]])
    assert dist.log_prob(paths, strict=True).isfinite().all()


@pytest.mark.parametrize("state", [-1, K, 99])
def test_a_state_out_of_range_without_validation(backend, state):
    dist = LinearChainCRF(normal(5, 2, T, K), normal(K, K), validate_args=False)
    paths = paths_with({(3, 1, 2): state})
    assert dist.log_prob(paths)[3, 1] == -torch.inf
    with pytest.raises(ValueError, match=rf"batch index \(3, 1\).*state {state} at step 2"):
        dist.log_prob(paths, strict=True)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("state", [-1, K, 99])
def test_a_state_out_of_range_with_validation(state, strict):
    dist = build()
    with pytest.raises(ValueError, match=rf"value.*{state} at step 2 of index \(3, 1\)"):
        dist.log_prob(paths_with({(3, 1, 2): state}), strict=strict)


def test_a_row_that_is_not_one_hot():
    dist = build()
    event = dist.event_of(paths_with({}))
    event[3, 1, 2] = 1.0
    with pytest.raises(ValueError, match=r"value.*one-hot.*step 2 of index \(3, 1\)"):
        dist.log_prob(event)
