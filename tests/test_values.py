"""Every answer of every structure equals the one found by enumerating all outcomes."""

import functools
from collections.abc import Callable

import torch
from torch.testing import assert_close

from tests.enumeration import BatchOracle
from tests.quantities import PAIR_QUANTITIES, kl
from tests.structures.registry import over
from tests.structures.structure import Ask, BaseExample, Structure

LOW_PRECISION = [torch.float32, torch.bfloat16, torch.float16]
TOLERANCE = {"atol": 1e-4, "rtol": 1e-4}


@functools.cache
def oracle_of(example: BaseExample) -> BatchOracle:
    return example.oracle()


@functools.cache
def rescored_once(example: BaseExample) -> BaseExample:
    return example.rescored()


@over(example="examples", ask="quantities")
def test_equals_enumeration(example: BaseExample, ask: Ask):
    assert_close(ask(example.crf()), ask(oracle_of(example)))


@over(example="examples", ask=PAIR_QUANTITIES)
def test_pair_equals_enumeration(example: BaseExample, ask: Callable):
    other = rescored_once(example)
    expected = ask(oracle_of(example), oracle_of(other))
    assert_close(ask(example.crf(), other.crf()), expected)


@over(example="examples")
def test_answers_have_the_batch_shape_of_the_example(example: BaseExample):
    crf, oracle = example.crf(), oracle_of(example)
    assert crf.log_partition.shape == oracle.batch_shape
    assert crf.event_shape == oracle.event_shape


@over(example="examples")
def test_log_prob_of_paths_and_events(structure: Structure, example: BaseExample):
    """Both forms of a value; what is forbidden has log probability -inf."""
    crf, oracle = example.crf(), oracle_of(example)
    paths = structure.some_paths(crf)
    expected = oracle.log_prob(paths)
    events = structure.raw_events(paths, crf.event_shape, crf.lengths)
    assert_close(crf.log_prob(paths), expected)
    assert_close(crf.log_prob(events.double()), expected)
    assert_close(crf.log_prob(events), expected)


@over(example="examples")
def test_mode_and_argmax(example: BaseExample):
    crf, oracle = example.crf(), oracle_of(example)
    assert torch.equal(crf.argmax, oracle.argmax)
    assert torch.equal(crf.mode, oracle.mode)


@over(example="examples", k=[0, 1, 2, 7, 100])
def test_topk(example: BaseExample, k: int):
    """The k best paths; where there are fewer, -inf and zeros."""
    found, expected = example.crf().topk(k), oracle_of(example).topk(k)
    assert_close(found.log_probs, expected.log_probs)
    assert torch.equal(found.paths, expected.paths)


@over(ask=PAIR_QUANTITIES)
def test_divergence_is_infinite_where_q_forbids_what_p_allows(structure: Structure, ask: Callable):
    p = structure.random("p", (5,), seed=1)
    q = structure.forbid_some(p.rescored(), seed=4)
    found, expected = ask(p.crf(), q.crf()), ask(p.oracle(), q.oracle())
    assert expected.isinf().any()
    assert_close(found, expected)
    assert ask(q.crf(), p.crf()).isfinite().all()


@over(example="examples")
def test_divergence_from_itself_is_zero(example: BaseExample):
    divergence = kl(example.crf(), example.crf())
    assert_close(divergence, torch.zeros_like(divergence))


@over(example="examples", dtype=LOW_PRECISION)
def test_low_precision_is_computed_in_float32(
    structure: Structure, example: BaseExample, dtype: torch.dtype
):
    low = example.to(dtype)
    crf, oracle = low.crf(), low.oracle()
    for quantity, ask in structure.quantities.items():
        found = ask(crf)
        assert found.dtype == torch.float32, quantity
        assert_close(found.double(), ask(oracle), msg=naming(quantity), **TOLERANCE)


def naming(quantity: str):
    return lambda message: f"{quantity}: {message}"


@over(example="examples", dtype=LOW_PRECISION)
def test_best_paths_in_low_precision(example: BaseExample, dtype: torch.dtype):
    """Ties may be broken either way: the paths found are distinct and have the best scores."""
    low = example.to(dtype)
    found, oracle = low.crf().topk(3), low.oracle()
    best = oracle.topk(3).log_probs
    scores = oracle.log_prob(found.paths).where(best > -torch.inf, -torch.inf)
    assert_close(scores, best, **TOLERANCE)
    assert_close(oracle.log_prob(low.crf().argmax), best[0], **TOLERANCE)
