"""Bad input gives a `ValueError` that names the argument and says what was wrong with it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structdist import SemiMarkovCRF

GOOD = {
    "emissions": torch.zeros(5, 4, 3),
    "transitions": torch.zeros(3, 3),
    "durations": torch.zeros(2, 3),
}


def build(**arguments) -> SemiMarkovCRF:
    """A good chain of batch shape (5,), T = 4, L = 2, K = 3, with some arguments replaced."""
    return SemiMarkovCRF(**{**GOOD, **arguments})


WRONG_SHAPES = {
    "emissions": [(3,), (5, 0, 3), (5, 4, 0)],
    "transitions": [(3,), (2, 2), (4, 3, 3), (5, 4, 3, 3)],
    "durations": [(), (3,), (0, 3), (2, 2), (4, 2, 3), (5, 2, 4)],
    "segments": [(2, 3), (3, 2, 3), (5, 4, 1, 3), (5, 4, 0, 3), (5, 4, 2, 2), (4, 4, 2, 3)],
    "start": [(2,), (4, 3)],
    "end": [(2,), (4, 3)],
    "lengths": [(4,), (3, 4)],
}


@pytest.mark.parametrize(
    ("name", "shape"), [(name, shape) for name, shapes in WRONG_SHAPES.items() for shape in shapes]
)
@pytest.mark.parametrize("validate_args", [True, False])
def test_wrong_shape(name: str, shape: tuple, validate_args: bool):
    wrong = torch.zeros(shape, dtype=torch.long if name == "lengths" else torch.float32)
    with pytest.raises(ValueError, match=name):
        build(**{name: wrong}, validate_args=validate_args)


def test_durations_or_segments_must_say_how_long_segments_are():
    with pytest.raises(ValueError, match=r"durations .* or segments"):
        build(durations=None)
    assert build(durations=None, segments=torch.zeros(4, 6, 3)).event_shape == (4, 6, 3)


@pytest.mark.parametrize("name", ["emissions", "transitions", "durations", "segments"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_no_scores(name: str, value: float):
    scores = torch.zeros(GOOD[name].shape if name in GOOD else (5, 4, 2, 3))
    scores.view(-1)[0] = value
    with pytest.raises(ValueError, match=name):
        build(**{name: scores}, validate_args=True)


@pytest.mark.parametrize("name", ["durations", "segments"])
@pytest.mark.parametrize("wrong", [[0.0], torch.zeros(2, 3).long(), torch.zeros(2, 3).cfloat()])
def test_scores_of_another_kind(name: str, wrong: object):
    with pytest.raises(ValueError, match=name):
        build(**{name: wrong})


@pytest.mark.parametrize("lengths", [[4, 5, 0, 0, 6], [0, -1, 0, 9, 0]])
def test_lengths_out_of_range(lengths: list[int]):
    with pytest.raises(ValueError, match=r"lengths must lie in 0\.\.4.*at index \(1,\)"):
        build(lengths=torch.tensor(lengths), validate_args=True)


def test_a_chain_that_no_allowed_segmentation_tiles():
    """Segments of two steps alone do not tile three."""
    durations = torch.tensor([[-torch.inf] * 3, [0.0] * 3])
    crf = build(durations=durations, lengths=torch.tensor([4, 2, 0, 3, 4]), validate_args=True)
    for ask in (lambda: crf.log_partition, lambda: crf.argmax, lambda: crf.sample()):
        with pytest.raises(ValueError, match=r"batch index \(3,\).*durations"):
            ask()


def event(*segments: tuple[int, int, int]) -> Tensor:
    """Of one chain of four steps: first step, length and label of each segment."""
    made = torch.zeros(4, 2, 3)
    for first, size, label in segments:
        made[first, size - 1, label] += 1
    return made


ILL_FORMED = {
    "nothing": event(),
    "a gap": event((0, 2, 1), (3, 1, 0)),
    "an overlap": event((0, 2, 1), (1, 2, 0), (3, 1, 0)),
    "two at once": event((0, 2, 1), (2, 2, 0), (2, 2, 1)),
    "two lengths at once": event((0, 2, 1), (2, 2, 0), (2, 1, 0)),
    "beyond the end": event((0, 2, 1), (2, 1, 0), (3, 2, 1)),
    "a late start": event((1, 1, 0), (2, 2, 0)),
    "half a segment": event((0, 2, 1), (2, 2, 0)) / 2,
    "twice one": event((0, 2, 1), (0, 2, 1), (2, 2, 0)),
}


@pytest.mark.parametrize("value", ILL_FORMED.values(), ids=ILL_FORMED)
def test_ill_formed_events(value: Tensor):
    crf = build(validate_args=True)
    assert not crf.support.check(value).any()
    with pytest.raises(ValueError, match="segments must cover each step"):
        crf.log_prob(value)
    good = event((0, 2, 1), (2, 2, 0))
    with pytest.raises(ValueError, match=r"index \(1, 0\)"):
        crf.log_prob(torch.stack([good, value])[:, None])


@pytest.mark.parametrize(
    "path", [[3, 0, 0, 0], [0, 4, 0, 0], [0, 3, 3, 0], [0, 0, 6, 0], [0, -1, 0, 0]]
)
def test_ill_formed_paths(path: list[int]):
    """What goes on without a beginning, as another label or for too long; and what is no code."""
    crf, value = build(validate_args=True), torch.tensor(path)
    with pytest.raises(ValueError, match="value must hold segmentations"):
        crf.log_prob(value)
    with pytest.raises(ValueError, match="paths must hold segmentations"):
        crf.event_of(value)
    assert (build(validate_args=False).log_prob(value) == -torch.inf).all()


def test_ill_formed_labels():
    crf, starts = build(validate_args=True), torch.tensor([True, False, True, True])
    for labels, named in (([0, 1, 0, 0], "labels and starts"), ([0, 0, 3, 0], "labels must lie")):
        with pytest.raises(ValueError, match=named):
            crf.log_prob((torch.tensor(labels), starts))
    with pytest.raises(ValueError, match="starts must be bool"):
        crf.event_of(torch.zeros(4).long(), starts.long())
    with pytest.raises(ValueError, match="labels must end in"):
        crf.event_of(torch.zeros(3).long(), starts)
    with pytest.raises(ValueError, match="value must be a pair"):
        crf.log_prob((torch.zeros(4).long(),))


def test_what_is_known_must_be_possible():
    crf = build(validate_args=True)
    nothing = torch.full((5, 4), -1)
    for name, value in (("labels", 3), ("starts", 2), ("observed", 6)):
        wrong = nothing.clone()
        wrong[2, 1] = value
        with pytest.raises(ValueError, match=rf"{name} must .* {value} at step 1 of index \(2,\)"):
            crf.condition(**{name: wrong})
    with pytest.raises(ValueError, match="no allowed path"):
        assert crf.condition(starts=torch.tensor([0, -1, -1, -1])).log_partition


def test_strict_log_prob_names_what_is_forbidden():
    durations, transitions = torch.zeros(2, 3), torch.zeros(3, 3)
    durations[1, 2] = transitions[0, 1] = -torch.inf
    crf = build(durations=durations, transitions=transitions)
    for path, reason in (
        ([0, 1, 0, 0], "move from 0 to 1 into step 1"),
        ([1, 2, 5, 0], "segment of label 2 and length 2 from step 1"),
    ):
        with pytest.raises(ValueError, match=reason):
            crf.log_prob(torch.tensor(path), strict=True)


@pytest.mark.parametrize("shape", [(3,), (2, 2), (4, 2, 3), (6, 2, 3), (5, 3, 2, 3)])
def test_values_of_a_wrong_shape(shape: tuple):
    with pytest.raises(ValueError, match="segment_values"):
        build().expectation(segment_values=torch.zeros(shape))


def test_supports_too_large_to_list():
    with pytest.raises(ValueError, match="too many to enumerate"):
        SemiMarkovCRF(torch.zeros(30, 3), torch.zeros(3, 3), torch.zeros(2, 3)).enumerate_support()
