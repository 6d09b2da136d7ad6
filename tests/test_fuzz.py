"""The fuzzer finds nothing, and would find something if it were there."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import LinearChainCRF, SemiMarkovCRF
from structdist.base import StructuredDistribution
from tests.chains import random_example
from tests.fuzz import sanitized
from tests.fuzz.__main__ import main
from tests.fuzz.cases import exact_of, make_case
from tests.fuzz.listings import Sizes
from tests.fuzz.parts import by_kind, pulled_back
from tests.structures.semi_markov import random_segments
from tests.structures.structure import BaseExample

EXAMPLES = [
    (random_example("linear", (5,), "per_step", ends=True, seed=1), Sizes(4, 3)),
    (random_segments("segments", (2, 3), "per_chain", 4, 3, 2, seed=2), Sizes(4, 2, 3)),
]
CHAINS_OF_A_MINUTE = 10_000
CHAINS_UNDER_SANITIZERS = 2_000


# What it compares with -----------------------------------------------------------------------


@pytest.mark.parametrize(("example", "sizes"), EXAMPLES)
def test_enumeration_agrees_with_that_of_other_tests(example: BaseExample, sizes: Sizes):
    exact, oracle = exact_of(example, sizes), example.oracle()
    for side in exact.log_partition():
        assert_close(side, oracle.log_partition.flatten())
    for side in exact.part_marginals():
        moves = by_kind(side, sizes)["moves"]
        assert_close(moves, oracle.edge_marginals.reshape(moves.shape))
    assert_close(exact.entropy(), oracle.entropy().flatten())
    assert_close(exact.renyi_entropy(2.0), oracle.renyi_entropy(2.0).flatten())
    assert_close(exact.renyi_entropy(math.inf), oracle.renyi_entropy(math.inf).flatten())
    assert (exact.doubt() < 1e-10).all()


@pytest.mark.parametrize(("example", "sizes"), EXAMPLES)
def test_gradients_by_parts_are_those_of_enumeration(example: BaseExample, sizes: Sizes):
    exact, leaf = exact_of(example, sizes), example.leaves()
    entropy = leaf.oracle().entropy().sum()
    expected = torch.autograd.grad(entropy, list(leaf.scores.values()), materialize_grads=True)
    found = pulled_back(exact.entropy_by_parts(), example, sizes)
    assert_close([found[name] for name in leaf.scores], list(expected))


def test_beside_huge_scores_probabilities_are_in_doubt():
    """Two paths that differ by 1 beside 1e30, of which neither rounding nor anybody knows."""
    example, sizes = (
        random_example("huge", (), num_steps=1, num_states=2, lengths=None),
        Sizes(1, 2),
    )
    for scale, is_known in ((1.0, True), (1e30, False)):
        scores = torch.tensor([[1.0, 1.0 + 1e-16]]).double() * scale
        huge = example.with_scores(scores, example.transitions)
        exact = exact_of(type(huge)("huge", *huge.scores.values(), lengths=torch.tensor(1)), sizes)
        low, high = exact.part_marginals()
        assert bool((high - low).max() < 1e-12) is is_known
        assert bool(exact.doubt() < 1e-12) is is_known


# What it does --------------------------------------------------------------------------------


def test_a_case_is_the_same_every_time():
    first, again = (make_case(3, 7) for _ in range(2))
    assert first.name == again.name
    for one, other in zip(
        first.example.scores.values(), again.example.scores.values(), strict=True
    ):
        assert torch.equal(one.isnan(), other.isnan())
        assert torch.equal(one.nan_to_num(), other.nan_to_num())
        assert one.stride() == other.stride()


def test_the_first_cases_are_right(capsys: pytest.CaptureFixture):
    assert main(["--seed", "0", "--chains", "100"]) == 0
    assert " 0 wrong answers" in capsys.readouterr().out


def off_by(amount: float) -> Callable:
    return lambda answer: answer + amount


def spoiled(answer: Tensor) -> Tensor:
    """NaN in the last of all numbers."""
    last = torch.arange(answer.numel()).view(answer.shape) == answer.numel() - 1
    return torch.where(last, torch.nan, answer)


FAULTS = {
    "log_partition": off_by(3e-3),
    "marginals": spoiled,
    "edge_marginals": off_by(1e-3),
    "argmax": off_by(1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_can_be_seen_again(name: str, monkeypatch, capsys):
    for kind in (LinearChainCRF, SemiMarkovCRF, StructuredDistribution):
        right = vars(kind).get(name)
        if right is not None:
            wrong = property(lambda self, right=right: FAULTS[name](right.fget(self)))
            monkeypatch.setattr(kind, name, wrong)
    assert main(["--seed", "0", "--chains", "60", "--backends", "rescaled"]) == 1
    line = next(x for x in capsys.readouterr().out.splitlines() if name in x)
    again = line[line.index("--seed") : -1].split()
    assert main(again) == 1
    assert line in capsys.readouterr().out


@pytest.mark.slow
def test_a_minute_of_chains_is_right(capsys: pytest.CaptureFixture):
    failed = main(["--seed", "1", "--chains", str(CHAINS_OF_A_MINUTE)])
    assert not failed, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(sanitized.runtime() is None, reason="there is no g++ with sanitizers")
def test_kernels_do_nothing_undefined():
    assert sanitized.main(["--seed", "2", "--chains", str(CHAINS_UNDER_SANITIZERS)]) == 0
