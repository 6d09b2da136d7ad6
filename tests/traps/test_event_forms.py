"""Events and paths in every dtype: `log_prob` reads what the shape says, or says why not."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import one_hot

from tests.traps.chains import chain, random_paths

INTEGERS = [torch.long, torch.int32, torch.int16, torch.int8, torch.uint8]
SHAPES = [((), ()), ((), (2,)), ((3,), ()), ((3,), (2,)), ((2, 3), ()), ((2, 3), (5, 1))]


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool, torch.float32, torch.float64])
@pytest.mark.parametrize(("batch_shape", "sample_shape"), SHAPES)
def test_one_hot_events_of_every_dtype_are_equal(batch_shape, sample_shape, dtype):
    dist = chain(batch_shape, num_steps=4, num_states=3)
    paths = random_paths(*sample_shape, *batch_shape, 4, num_states=3)
    expected = dist.log_prob(paths)
    assert expected.shape == sample_shape + batch_shape
    assert torch.equal(dist.log_prob(one_hot(paths, 3).to(dtype)), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_paths_of_every_integer_dtype_are_equal(dtype):
    dist = chain((3,), num_steps=4, num_states=3)
    paths = random_paths(2, 3, 4, num_states=3)
    assert torch.equal(dist.log_prob(paths.to(dtype)), dist.log_prob(paths))


def test_one_event_for_all_chains_of_a_batch():
    dist = chain((3,), num_steps=4, num_states=2)
    path = random_paths(4, num_states=2)
    expected = dist.log_prob(path.expand(3, 4))
    assert torch.equal(dist.log_prob(one_hot(path, 2)), expected)
    assert torch.equal(dist.log_prob(path), expected)


@pytest.mark.parametrize(
    ("batch_shape", "sample_shape"),
    [((), ()), ((), (2,)), ((3,), ()), ((3,), (2,)), ((1,), ()), ((1,), (2,)), ((3, 3), ())],
)
def test_both_readings_are_an_error_that_says_how_to_choose(batch_shape, sample_shape):
    """With T = K = 3 these shapes are those of an event, and of paths with more samples."""
    dist = chain(batch_shape, num_steps=3, num_states=3)
    value = one_hot(random_paths(*sample_shape, *batch_shape, 3, num_states=3), 3)
    with pytest.raises(ValueError, match=r"value\.bool\(\).*dist\.event_of\(value\)"):
        dist.log_prob(value)
    with pytest.raises(ValueError, match="T = K"):
        chain(batch_shape, 3, 3, validate_args=False).log_prob(value)


@pytest.mark.parametrize("batch_shape", [(), (3,), (1,), (2, 3)])
def test_both_ways_to_choose_a_reading(batch_shape):
    dist = chain(batch_shape, num_steps=3, num_states=3)
    paths = random_paths(*batch_shape, 3, num_states=3)
    event = one_hot(paths, 3)
    assert torch.equal(dist.log_prob(event.bool()), dist.log_prob(event.double()))
    as_paths = event.expand(*batch_shape, 3, 3)  # each row of the event as a path
    found = dist.log_prob(dist.event_of(as_paths.movedim(-2, 0)))
    expected = torch.stack([dist.log_prob(dist.event_of(as_paths[..., n, :])) for n in range(3)])
    assert torch.equal(found, expected)
    assert not torch.allclose(dist.log_prob(event.bool()), expected[0])


@pytest.mark.parametrize(("batch_shape", "sample_shape"), [((2,), ()), ((2,), (4,)), ((2, 5), ())])
def test_events_that_cannot_be_paths_are_read(batch_shape, sample_shape):
    """With T = K = 3 and a batch that 3 does not fit, only one reading is possible."""
    dist = chain(batch_shape, num_steps=3, num_states=3)
    event = one_hot(random_paths(*sample_shape, *batch_shape, 3, num_states=3), 3)
    found = dist.log_prob(event)
    assert found.shape == sample_shape + batch_shape
    assert torch.equal(found, dist.log_prob(event.double()))


def test_a_batch_of_tags_stays_a_batch_of_paths():
    """With B = T = K, [B, T] as an event would lack batch dimensions."""
    dist = chain((3,), num_steps=3, num_states=3)
    tags = torch.eye(3, dtype=torch.long)  # looks like an event, and is none
    assert torch.equal(dist.log_prob(tags), dist.log_prob(dist.event_of(tags)))
    paths = random_paths(3, 3, num_states=3, seed=1)
    expected = torch.stack([dist.log_prob(dist.event_of(paths))[n] for n in range(3)])
    assert torch.equal(dist.log_prob(paths), expected)


def test_a_batch_of_tags_of_the_wrong_size_is_not_taken_for_an_event():
    dist = chain((2,), num_steps=3, num_states=3)
    for validate_args in (True, False):
        dist = chain((2,), num_steps=3, num_states=3, validate_args=validate_args)
        with pytest.raises(ValueError, match="broadcast"):
            dist.log_prob(torch.eye(3, dtype=torch.long))


@pytest.mark.parametrize("value", [torch.zeros(4, dtype=torch.cfloat), torch.zeros(4, 2), "path"])
def test_what_is_neither_is_an_error(value):
    with pytest.raises(ValueError, match="value must"):
        chain(num_steps=4, num_states=3).log_prob(value)


def test_events_from_paths():
    dist = chain((2,), num_steps=4, num_states=3, lengths=torch.tensor([4, 2]))
    paths = random_paths(5, 2, 4, num_states=3)
    events = dist.event_of(paths)
    assert events.dtype == torch.float64
    assert torch.equal(events[:, 0], one_hot(paths[:, 0], 3).double())
    assert torch.equal(events[:, 1, :2], one_hot(paths[:, 1, :2], 3).double())
    assert (events[:, 1, 2:] == 0).all()


@pytest.mark.parametrize("state", [-1, 3, 99])
def test_events_from_paths_that_are_none(state):
    paths = torch.zeros(2, 4, dtype=torch.long)
    paths[1, 2] = state
    with pytest.raises(ValueError, match=rf"paths must lie in.*{state} at step 2 of index"):
        chain((2,), num_steps=4, num_states=3).event_of(paths)
    with pytest.raises(ValueError, match="paths must be integers"):
        chain((2,), num_steps=4, num_states=3).event_of(paths.double())
    paths[1, 2], paths[1, 3] = 0, state  # in the padding
    chain((2,), num_steps=4, num_states=3, lengths=torch.tensor([4, 3])).event_of(paths)
