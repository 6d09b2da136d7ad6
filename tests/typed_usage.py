"""What type checkers make of the public API: `make lint` reads this file, nothing runs it."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import assert_type

from structdist import (
    LinearChain,
    LinearChainCRF,
    PathsWithLogProb,
    Relaxed,
    RelaxedWithPaths,
    SegmentLabels,
    SemiMarkov,
    SemiMarkovCRF,
    StraightThrough,
    TopK,
    lengths_from_mask,
    tagging,
)
from structdist.compat import CRF
from structdist.estimators import IMLE, AdaptiveStep, Estimate, Reinforce, estimator


class Tagging(LinearChainCRF):
    """A class of a user's own."""


def layer(crf: LinearChain, emissions: Tensor, tags: Tensor, lengths: Tensor) -> None:
    assert_type(crf(emissions), LinearChainCRF)
    assert_type(crf(emissions, lengths), LinearChainCRF)
    assert_type(crf(emissions, lengths=lengths), LinearChainCRF)
    assert_type(crf(emissions, lengths).log_prob(tags), Tensor)
    assert_type(crf.loss(emissions, tags, lengths), Tensor)
    assert_type(crf.transitions, torch.nn.Parameter)
    assert_type(crf.start, torch.nn.Parameter | None)
    assert_type(crf.allowed, Tensor | None)
    LinearChain(3, device="meta", dtype=torch.float64)
    LinearChain(3, device=torch.device("cpu"), dtype=None)


def segment_layer(crf: SemiMarkov, emissions: Tensor, labels: Tensor, starts: Tensor) -> None:
    assert_type(crf(emissions), SemiMarkovCRF)
    assert_type(crf(emissions, segments=emissions), SemiMarkovCRF)
    assert_type(crf.loss(emissions, labels, starts), Tensor)
    assert_type(crf.transitions, torch.nn.Parameter)
    assert_type(crf.start, torch.nn.Parameter | None)
    SemiMarkov(3, 4, durations="poisson", device="meta")
    SemiMarkov(3, [1, 2, 2])
    SemiMarkov(3, torch.tensor([1, 2, 2]))


def inference(dist: LinearChainCRF, value: Tensor) -> None:
    assert_type(dist.log_partition, Tensor)
    assert_type(dist.marginals, Tensor)
    assert_type(dist.edge_marginals, Tensor)
    assert_type(dist.mean, Tensor)
    assert_type(dist.variance, Tensor)
    assert_type(dist.argmax, Tensor)
    assert_type(dist.mode, Tensor)
    assert_type(dist.lengths, Tensor)
    assert_type(dist.emissions, Tensor)
    assert_type(dist.start, Tensor | None)
    assert_type(dist.batch_shape, torch.Size)
    assert_type(dist.log_prob(value), Tensor)
    assert_type(dist.log_prob(value, strict=True), Tensor)
    assert_type(dist.event_of(value), Tensor)
    assert_type(dist.entropy(), Tensor)
    assert_type(dist.renyi_entropy(2), Tensor)
    assert_type(dist.cross_entropy(dist), Tensor)
    assert_type(dist.expectation(node_values=value), Tensor)
    assert_type(dist.topk(2), TopK)
    assert_type(dist.topk(2).paths, Tensor)
    assert_type(lengths_from_mask(value), Tensor)


def draws(dist: LinearChainCRF, noise: Tensor) -> None:
    assert_type(dist.sample(), Tensor)
    assert_type(dist.sample((2, 3)), Tensor)
    assert_type(dist.sample_paths(torch.Size([2])), Tensor)
    assert_type(dist.rsample(), Tensor)
    assert_type(dist.rsample((2,), temperature=0.5, straight_through=True, noise=noise), Tensor)
    assert_type(dist.perturb_and_map([2], perturb="nodes"), Tensor)
    assert_type(dist.sample_with_log_prob(), PathsWithLogProb)
    assert_type(dist.sample_with_log_prob().log_prob, Tensor)
    assert_type(dist.rsample_with_paths(), RelaxedWithPaths)
    assert_type(dist.rsample_with_paths().value, Tensor)
    assert_type(dist.relaxed(), Relaxed)
    assert_type(dist.relaxed(0.5).rsample(), Tensor)
    assert_type(dist.straight_through(), StraightThrough)
    assert_type(dist.straight_through(0.5).rsample((2,)), Tensor)


def derived(dist: LinearChainCRF, observed: Tensor, allowed: Tensor) -> None:
    assert_type(dist.expand((2, 3)), LinearChainCRF)
    assert_type(dist.expand(torch.Size([2, 3])), LinearChainCRF)
    assert_type(dist.condition(observed), LinearChainCRF)
    assert_type(dist.restrict(allowed), LinearChainCRF)
    assert_type(dist.condition(observed).restrict(allowed).expand([4]), LinearChainCRF)


def derived_from_a_subclass(dist: Tagging, observed: Tensor, allowed: Tensor) -> None:
    assert_type(dist.expand((2, 3)), Tagging)
    assert_type(dist.condition(observed), Tagging)
    assert_type(dist.restrict(allowed), Tagging)
    assert_type(dist.cross_entropy(dist.condition(observed)), Tensor)


def made_from_probabilities(initial: Tensor, transition: Tensor, observation: Tensor) -> None:
    assert_type(LinearChainCRF.from_hmm(initial, transition, observation), LinearChainCRF)
    assert_type(LinearChainCRF.markov(initial, transition, 5), LinearChainCRF)


def gradients(dist: LinearChainCRF) -> None:
    estimate = estimator("gumbel-rao", temperature=0.5).estimate(dist, lambda z: z.sum((-2, -1)))
    assert_type(estimate, Estimate)
    assert_type(estimate.surrogate, Tensor)
    assert_type(IMLE(step=AdaptiveStep(reach=2.0)).estimate(dist, Tensor.sum), Estimate)
    assert_type(Reinforce(num_samples=5, leave_one_out=True).settings, tuple[str, ...])


def tags_and_spans(labels: Tensor, starts: Tensor) -> None:
    spans = tagging.spans_from_tags([["O", "B-x"]], "BIO")
    assert_type(spans, list[list[tagging.Span]])
    assert_type(tagging.tags_from_spans(spans, [2], "BIOES"), list[list[str]])
    assert_type(tagging.tags_from_spans([[(0, 1, "x")]], labels), list[list[str]])
    assert_type(tagging.segments_from_spans(spans, [2], ["O", "x"]), SegmentLabels)
    assert_type(tagging.events_from_spans(spans, [2], ["O", "x"], longest=3), Tensor)
    assert_type(tagging.spans_from_segments(labels, starts, ["x"]), list[list[tagging.Span]])
    assert_type(tagging.allowed_transitions(["O"]).allowed_start, Tensor)
    assert_type(tagging.encode([["O", None]], ["O"]), Tensor)


def tagging_layers(dist: LinearChainCRF, spans: SemiMarkovCRF, scores: Tensor) -> None:
    assert_type(tagging.decode(dist), list[list[int]])
    assert_type(tagging.decode(spans, ["O", "x"]), list[list[str]])
    assert_type(tagging.confidence(dist), Tensor)
    layer = tagging.TagChain(["O", "B-x", "I-x"], constraints="eval")
    assert_type(layer(scores, mask=scores), LinearChainCRF)
    assert_type(layer.decode(scores), list[list[str]])
    assert_type(tagging.SpanChain(["O", "x"], 3).decode(scores), list[list[tagging.Span]])
    assert_type(dist.log_evidence(scores), Tensor)
    assert_type(spans.log_evidence(labels=scores), Tensor)


def drop_in(emissions: Tensor, tags: Tensor) -> None:
    layer = CRF(3, batch_first=True)
    assert_type(layer(emissions, tags, reduction="mean"), Tensor)
    assert_type(layer.decode(emissions), list[list[int]])
    assert_type(layer.distribution(emissions), LinearChainCRF)
    assert_type(layer.transitions, torch.nn.Parameter)
