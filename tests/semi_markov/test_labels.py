"""Labels and starts: the forms of a segmentation, relaxed ones, and what is known of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import SemiMarkovCRF
from structdist.ops import Draw
from structdist.ops.semi_markov.relaxed_events import (
    every_relaxed_event,
    every_relaxed_event_adjoint,
)
from structdist.segment_relaxation import relaxed_events
from tests.derivatives import gradients
from tests.structures.segment_oracle import all_segmentations
from tests.structures.semi_markov import EXAMPLES, SegmentExample, random_segments
from tests.structures.structure import normal, paths_over_batch, seeded

LABELS = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0]])
STARTS = torch.tensor([[1, 0, 1, 0, 1], [1, 1, 1, 0, 0]]).bool()
over_examples = pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)


def two_chains() -> SemiMarkovCRF:
    """Of lengths 5 and 3, with L = 2 and K = 2."""
    lengths = torch.tensor([5, 3])
    scores = torch.randn(2, 5, 2, generator=seeded(1), dtype=torch.float64)
    return SemiMarkovCRF(scores, scores[0, :2], scores[1, :2], lengths)


def test_forms_of_one_segmentation():
    crf = two_chains()
    paths = torch.tensor([[1, 3, 0, 2, 0], [0, 0, 1, 0, 0]])
    events = torch.zeros(2, 5, 2, 2, dtype=torch.float64)
    for place in (
        (0, 0, 1, 1),
        (0, 2, 1, 0),
        (0, 4, 0, 0),
        (1, 0, 0, 0),
        (1, 1, 0, 0),
        (1, 2, 0, 1),
    ):
        events[place] = 1
    assert torch.equal(crf.event_of(LABELS, STARTS), events)
    assert torch.equal(crf.event_of(paths), events)
    for value in (events, events.bool(), paths):
        found = crf.labels_of(value)
        assert torch.equal(found.labels, LABELS)
        assert torch.equal(found.starts, STARTS)
        assert_close(crf.log_prob(value), crf.log_prob((LABELS, STARTS)))


@over_examples
def test_labels_and_events_are_inverse(example: SegmentExample):
    crf = example.crf()
    events = crf.sample((7,), generator=seeded(2))
    assert torch.equal(crf.event_of(*crf.labels_of(events)), events)


@over_examples
def test_sampled_labels_are_those_of_sampled_events(example: SegmentExample):
    crf = example.crf()
    found = crf.sample_labels((7,), generator=seeded(3))
    expected = crf.labels_of(crf.sample((7,), generator=seeded(3)))
    assert torch.equal(found.labels, expected.labels)
    assert torch.equal(found.starts, expected.starts)


# Relaxed labels ------------------------------------------------------------------------------


@over_examples
@pytest.mark.parametrize("temperature", [0.2, 3.0])
def test_relaxed_labels_point_at_the_hard_draw(example: SegmentExample, temperature: float):
    """The largest label is the hard one; no boundary of a segment is larger than its own."""
    crf = example.crf()
    options = {"temperature": temperature, "generator": seeded(4)}
    labels, boundaries = crf.rsample_labels((7,), **options)
    options["generator"] = seeded(4)
    hard = crf.labels_of(crf.rsample_with_paths((7,), **options).paths)
    inside = (torch.arange(crf.event_shape[0]) < crf.lengths[..., None]).expand_as(hard.starts)
    assert torch.equal(labels.argmax(-1)[inside], hard.labels[inside])
    assert_close(labels.sum(-1), inside.double())
    assert ((boundaries >= 0) & (boundaries <= 1)).all()
    segment = hard.starts.long().cumsum(-1)  # which segment a step belongs to
    own = torch.zeros_like(boundaries).scatter_add(
        -1, segment.clamp(min=1) - 1, boundaries * hard.starts
    )
    assert (boundaries <= own.gather(-1, segment.clamp(min=1) - 1) + 1e-12)[inside].all()


def test_relaxed_labels_are_sums_of_the_relaxed_choice():
    """One segment of at most two steps: by hand."""
    scores = torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=torch.float64)
    durations = torch.tensor([[0.0, -1.0], [5.0, 6.0]], dtype=torch.float64)
    crf = SemiMarkovCRF(scores, torch.full((2, 2), -50.0).double(), durations)
    labels, boundaries = crf.rsample_labels(temperature=0.5, noise=torch.zeros(2, 4).double())
    ends = scores.sum(0) + durations[1]  # two segments weigh nothing
    assert_close(labels, (ends / 0.5).softmax(-1).expand(2, 2))
    assert_close(boundaries, torch.tensor([1.0, 0.0]).double())


def test_straight_through_labels_are_hard_with_the_relaxed_gradient():
    example = random_segments("straight", (2, 3), seed=5)
    soft, hard = example.leaves(), example.leaves()
    relaxed = soft.crf().rsample_labels((4,), generator=seeded(5))
    straight = hard.crf().rsample_labels((4,), straight_through=True, generator=seeded(5))
    expected = hard.crf().labels_of(hard.crf().rsample_with_paths((4,), generator=seeded(5)).paths)
    inside = torch.arange(4) < example.lengths[..., None]
    one_hot = torch.nn.functional.one_hot(expected.labels, 2) * inside[..., None]
    assert torch.equal(straight.labels, one_hot.double())
    assert torch.equal(straight.boundaries, expected.starts.double())
    for ours, theirs in zip(straight, relaxed, strict=True):
        assert_close(gradients(ours, hard), gradients(theirs, soft))


# What is known -------------------------------------------------------------------------------


def evidence(crf: SemiMarkovCRF, labels: Tensor, starts: Tensor) -> Tensor:
    """[*B]: the probability of what is known, by enumeration; -1 is unknown."""
    num_steps = crf.event_shape[0]
    paths = paths_over_batch(all_segmentations(*crf.event_shape, num_steps), crf.batch_shape)
    inside = torch.arange(num_steps) < crf.lengths[..., None]
    found = crf.labels_of(paths)
    agrees = ((labels == found.labels) | (labels < 0)) & ((starts == found.starts) | (starts < 0))
    codes = torch.where(inside, paths, 0)
    mass = torch.zeros(crf.batch_shape, dtype=torch.float64)
    for index in torch.cartesian_prod(*map(torch.arange, crf.batch_shape)).view(-1, 1).tolist():
        at = (slice(None), *index)
        _, first = codes[at].unique(dim=0, return_inverse=True)
        unique = torch.stack([(first == n).nonzero()[0, 0] for n in range(int(first.max()) + 1)])
        probs = crf.log_prob(paths)[at].exp() * (agrees | ~inside)[at].all(-1)
        mass[tuple(index)] = probs[unique].sum()
    return mass


@pytest.mark.parametrize("seed", range(4))
def test_condition_on_some_labels_and_boundaries(seed: int):
    """Together, one after the other, and by enumeration."""
    crf = random_segments("known", (5,), longest=3, segments=seed % 2 == 0, seed=seed).crf()
    truth, generator = crf.labels_of(crf.argmax), seeded(seed)
    hidden = [torch.rand(truth.labels.shape, generator=generator) < 0.6 for _ in range(2)]
    labels = truth.labels.masked_fill(hidden[0], -1)
    starts = truth.starts.long().masked_fill(hidden[1], -1)
    posterior = crf.condition(labels=labels, starts=starts)
    log_evidence = posterior.log_partition - crf.log_partition
    assert_close(log_evidence, evidence(crf, labels, starts).log())
    for other in (
        crf.condition(labels=labels).condition(starts=starts),
        crf.condition(starts=starts).condition(labels=labels),
    ):
        assert_close(other.log_partition, posterior.log_partition)
    assert_close(posterior.log_prob(crf.argmax), crf.log_prob(crf.argmax) - log_evidence)


def test_condition_on_all_boundaries():
    """Bool starts; labels stay free."""
    crf = two_chains()
    posterior = crf.condition(starts=STARTS)
    assert_close(posterior.boundary_marginals, STARTS.double())
    drawn = posterior.sample_labels((50,), generator=seeded(6)).starts
    assert (drawn == STARTS).all()


def test_condition_broadcasts_over_the_batch():
    crf = two_chains()
    grown = crf.condition(labels=torch.tensor([[[0, -1, -1, -1, -1]], [[1, -1, -1, -1, -1]]]))
    assert grown.batch_shape == (2, 2)
    assert_close(grown.log_partition.logsumexp(0), crf.log_partition)


@over_examples
def test_relaxed_events_equal_their_plain_twin(example: SegmentExample):
    """Values and gradients, whichever form makes them; within a graph, and of a second order."""
    crf = example.crf()
    draw, _ = crf._gumbel_ffbs((3,), 0.7, seeded(7), None)
    longest, soft = crf.event_shape[1], draw.soft.clone().requires_grad_()
    plain = every_relaxed_event(soft, longest)
    found = relaxed_events(Draw(soft, draw.path), longest)
    assert torch.equal(found, plain)
    weight = normal(*plain.shape)
    (expected,) = torch.autograd.grad((plain * weight).sum(), soft)
    for grads in (
        torch.autograd.grad((found * weight).sum(), soft, retain_graph=True),
        torch.autograd.grad((found * weight).sum(), soft, create_graph=True),
        [every_relaxed_event_adjoint(soft.detach(), longest, weight)],
    ):
        assert_close(grads[0], expected)


@over_examples
def test_straight_through_events_have_the_relaxed_gradient(example: SegmentExample):
    grads = []
    for hard in (False, True):
        leaf = example.leaves()
        drawn = leaf.crf().rsample((3,), straight_through=hard, generator=seeded(7))
        assert not hard or ((drawn == 0) | (drawn == 1)).all()
        grads.append(gradients(drawn, leaf))
    assert_close(*grads)


def test_vmap_of_relaxed_events():
    emissions = torch.randn(4, 5, 2, generator=seeded(8), dtype=torch.float64)
    noise = torch.randn(4, 5, 5, generator=seeded(9), dtype=torch.float64)

    def draw(scores: Tensor, gumbel: Tensor) -> Tensor:
        return SemiMarkovCRF(scores, emissions[0, :2], emissions[0, :3]).rsample(noise=gumbel)

    found = torch.func.vmap(draw)(emissions, noise)
    assert_close(found, torch.stack([draw(*each) for each in zip(emissions, noise, strict=True)]))
