"""Answers of linear chains whose arguments come in unlike forms, batches and dtypes."""

from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import random_example
from tests.quantities import PAIR_QUANTITIES

over_pair_quantities = pytest.mark.parametrize(
    "ask", PAIR_QUANTITIES.values(), ids=PAIR_QUANTITIES.keys()
)


@pytest.mark.parametrize(
    ("p_form", "q_form"),
    [("shared", "per_chain"), ("per_chain", "per_step"), ("per_step", "shared")],
)
@over_pair_quantities
def test_pair_of_unlike_forms(ask: Callable, p_form: str, q_form: str):
    p = random_example("p", (2, 3), p_form, ends=True, seed=5)
    q = random_example("q", (2, 3), q_form, seed=6)
    assert_close(ask(p.crf(), q.crf()), ask(p.oracle(), q.oracle()))


@over_pair_quantities
def test_pair_of_unlike_batches(ask: Callable):
    """A single chain against a batch: the batch dimensions broadcast."""
    single = random_example("p", (), lengths=None, seed=7)
    batch = random_example("q", (5,), "per_step", lengths=None, seed=8)
    repeated = single.with_scores(single.emissions.expand(5, -1, -1), single.transitions)
    found = ask(single.crf(), batch.crf()), ask(batch.crf(), single.crf())
    expected = (
        ask(repeated.oracle(), batch.oracle()),
        ask(batch.oracle(), repeated.oracle()),
    )
    assert_close(found, expected)


def test_mixed_dtypes_are_promoted():
    example = random_example("mixed", (5,), ends=True, seed=9)
    mixed = example.with_scores(
        example.emissions.float(),
        example.transitions,
        example.start.half(),
        example.end.bfloat16(),
    )
    assert mixed.crf().log_partition.dtype == torch.float64
    assert_close(mixed.crf().log_partition, mixed.oracle().log_partition)


def test_from_hmm_gives_the_evidence():
    """Log Z is the log probability of what was observed, summed over the hidden paths."""
    log_softmax = torch.nn.functional.log_softmax
    initial = log_softmax(torch.randn(3, dtype=torch.float64), -1)
    transition = log_softmax(torch.randn(3, 3, dtype=torch.float64), -1)
    observation = torch.rand(5, 4, 3, dtype=torch.float64).log()
    posterior = LinearChainCRF.from_hmm(initial, transition, observation)
    belief = initial.exp() * observation[:, 0].exp()
    for t in range(1, 4):
        belief = belief @ transition.exp() * observation[:, t].exp()
    assert_close(posterior.log_partition, belief.sum(-1).log())
    assert_close(posterior.mean[:, -1], belief / belief.sum(-1, keepdim=True))
