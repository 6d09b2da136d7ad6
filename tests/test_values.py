"""Every answer equals the one found by enumerating all paths."""

import functools

import pytest
import torch
from torch.testing import assert_close

from tests.chains import EXAMPLES, Example, forbid_some, over_examples, random_example
from tests.oracle import Oracle
from tests.quantities import PAIR_QUANTITIES, QUANTITIES, kl, rescored, some_paths

over_quantities = pytest.mark.parametrize("quantity", QUANTITIES)
over_pair_quantities = pytest.mark.parametrize("quantity", PAIR_QUANTITIES)
LOW_PRECISION = [torch.float32, torch.bfloat16, torch.float16]
TOLERANCE = {"atol": 1e-4, "rtol": 1e-4}


@functools.cache
def oracle_of(example: Example) -> Oracle:
    return example.oracle()


@functools.cache
def rescored_once(example: Example) -> Example:
    return rescored(example)


@over_quantities
@over_examples
def test_equals_enumeration(example: Example, quantity: str):
    ask = QUANTITIES[quantity]
    assert_close(ask(example.crf()), ask(oracle_of(example)))


@over_pair_quantities
@over_examples
def test_pair_equals_enumeration(example: Example, quantity: str):
    ask, other = PAIR_QUANTITIES[quantity], rescored_once(example)
    expected = ask(oracle_of(example), oracle_of(other))
    assert_close(ask(example.crf(), other.crf()), expected)


@over_examples
def test_log_prob_of_paths_and_events(example: Example):
    """Both forms of a value; what is forbidden has log probability -inf."""
    crf, oracle = example.crf(), oracle_of(example)
    paths = some_paths(crf)
    expected = oracle.log_prob(paths)
    events = torch.nn.functional.one_hot(paths, crf.event_shape[1])
    assert_close(crf.log_prob(paths), expected)
    assert_close(crf.log_prob(events.double()), expected)
    assert_close(crf.log_prob(events.bool()), expected)


@over_examples
def test_mode_and_argmax(example: Example):
    crf, oracle = example.crf(), oracle_of(example)
    assert torch.equal(crf.argmax, oracle.argmax)
    assert torch.equal(crf.mode, oracle.mode)


@pytest.mark.parametrize("k", [0, 1, 2, 7, 100])
@over_examples
def test_topk(example: Example, k: int):
    """The k best paths; where there are fewer, -inf and zeros."""
    found, expected = example.crf().topk(k), oracle_of(example).topk(k)
    assert_close(found.log_probs, expected.log_probs)
    assert torch.equal(found.paths, expected.paths)


def test_divergence_is_infinite_where_q_forbids_what_p_allows():
    p = random_example("p", (5,), lengths="mixed", seed=1)
    q = forbid_some(rescored(p), seed=4)
    for ask in PAIR_QUANTITIES.values():
        found, expected = ask(p.crf(), q.crf()), ask(p.oracle(), q.oracle())
        assert expected.isinf().any()
        assert_close(found, expected)
        assert ask(q.crf(), p.crf()).isfinite().all()


def test_divergence_from_itself_is_zero():
    for example in EXAMPLES:
        divergence = kl(example.crf(), example.crf())
        assert_close(divergence, torch.zeros_like(divergence))


@pytest.mark.parametrize(
    ("p_form", "q_form"),
    [("shared", "per_chain"), ("per_chain", "per_step"), ("per_step", "shared")],
)
@over_pair_quantities
def test_pair_of_unlike_forms(quantity: str, p_form: str, q_form: str):
    ask = PAIR_QUANTITIES[quantity]
    p = random_example("p", (2, 3), p_form, ends=True, seed=5)
    q = random_example("q", (2, 3), q_form, seed=6)
    assert_close(ask(p.crf(), q.crf()), ask(p.oracle(), q.oracle()))


@over_pair_quantities
def test_pair_of_unlike_batches(quantity: str):
    """A single chain against a batch: the batch dimensions broadcast."""
    ask = PAIR_QUANTITIES[quantity]
    single = random_example("p", (), lengths=None, seed=7)
    batch = random_example("q", (5,), "per_step", lengths=None, seed=8)
    repeated = single.with_scores(single.emissions.expand(5, -1, -1), single.transitions)
    found = ask(single.crf(), batch.crf()), ask(batch.crf(), single.crf())
    expected = (
        ask(repeated.oracle(), batch.oracle()),
        ask(batch.oracle(), repeated.oracle()),
    )
    assert_close(found, expected)


@pytest.mark.parametrize("dtype", LOW_PRECISION)
@over_examples
def test_low_precision_is_computed_in_float32(example: Example, dtype: torch.dtype):
    low = example.to(dtype)
    crf, oracle = low.crf(), low.oracle()
    for quantity, ask in QUANTITIES.items():
        found = ask(crf)
        assert found.dtype == torch.float32, quantity
        assert_close(found.double(), ask(oracle), msg=naming(quantity), **TOLERANCE)


def naming(quantity: str):
    return lambda message: f"{quantity}: {message}"


@pytest.mark.parametrize("dtype", LOW_PRECISION)
@over_examples
def test_best_paths_in_low_precision(example: Example, dtype: torch.dtype):
    """Ties may be broken either way: the paths found are distinct and have the best scores."""
    low = example.to(dtype)
    found, oracle = low.crf().topk(3), low.oracle()
    best = oracle.topk(3).log_probs
    scores = oracle.log_prob(found.paths).where(best > -torch.inf, -torch.inf)
    assert_close(scores, best, **TOLERANCE)
    assert_close(oracle.log_prob(low.crf().argmax), best[0], **TOLERANCE)


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
    crf_type = type(random_example().crf())
    log_softmax = torch.nn.functional.log_softmax
    initial = log_softmax(torch.randn(3, dtype=torch.float64), -1)
    transition = log_softmax(torch.randn(3, 3, dtype=torch.float64), -1)
    observation = torch.rand(5, 4, 3, dtype=torch.float64).log()
    posterior = crf_type.from_hmm(initial, transition, observation)
    belief = initial.exp() * observation[:, 0].exp()
    for t in range(1, 4):
        belief = belief @ transition.exp() * observation[:, t].exp()
    assert_close(posterior.log_partition, belief.sum(-1).log())
    assert_close(posterior.mean[:, -1], belief / belief.sum(-1, keepdim=True))
