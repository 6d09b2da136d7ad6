"""Layers whose states have names: what they forbid when, and what they find."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from structdist import LinearChain, tagging
from structdist.tagging import Span, SpanChain, TagChain
from tests.chains import seeded

TAGS = tagging.tag_names(["person", "place"], "BIO")


def tempting(num_sentences: int = 20) -> torch.Tensor:
    """Emissions [B, T, K] that ask for ill-formed tags."""
    emissions = torch.randn(num_sentences, 5, len(TAGS), generator=seeded(0))
    emissions[..., TAGS.index("I-place")] += 3.0
    return emissions


def is_ill_formed(sentences: list[list[str]]) -> bool:
    try:
        tagging.spans_from_tags(sentences, "BIO")
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("constraints", ["always", "eval", "never"])
def test_when_constraints_hold(constraints: str, training: bool):
    layer = TagChain(TAGS, constraints=constraints).train(training)
    hold = constraints == "always" or (constraints == "eval" and not training)
    assert is_ill_formed(layer.decode(tempting())) != hold
    dist = layer(tempting())
    assert is_ill_formed(tagging.decode(dist, TAGS)) != hold
    samples = layer(tempting(3)).sample_paths((50,), generator=seeded(1)).flatten(0, 1)
    assert is_ill_formed([[TAGS[k] for k in row] for row in samples.tolist()]) != hold


def test_constraints_are_no_part_of_what_is_learnt():
    free, strict = TagChain(TAGS, constraints="never"), TagChain(TAGS)
    strict.load_state_dict(free.state_dict())
    plain = LinearChain(len(TAGS), start=True, end=True)
    plain.load_state_dict(strict.state_dict())
    masks = tagging.allowed_transitions(TAGS)
    by_hand = LinearChain(len(TAGS), start=True, end=True, **masks._asdict())
    by_hand.load_state_dict(plain.state_dict())
    emissions = tempting(2)
    assert_close(strict(emissions).marginals, by_hand(emissions).marginals)
    assert_close(free(emissions).marginals, plain(emissions).marginals)


def test_ill_formed_gold_is_an_error_where_it_is_forbidden():
    gold = tagging.encode([["O", "I-place"]], TAGS)
    layer, emissions = TagChain(TAGS, constraints="eval"), torch.zeros(1, 2, len(TAGS))
    assert layer.loss(emissions, gold).isfinite()
    with pytest.raises(ValueError, match="probability 0 at batch index"):
        layer.eval().loss(emissions, gold)


def test_tags_without_a_scheme_may_follow_each_other():
    layer = TagChain(["NOUN", "VERB"], scheme=None)
    assert layer.allowed is None
    assert layer.decode(torch.zeros(2, 3, 2), mask=torch.tensor([[1, 1, 1], [1, 0, 0]]))[1] in (
        ["NOUN"],
        ["VERB"],
    )


def test_repr_tells_the_rules():
    assert "5, start=True, end=True, scheme=BIO, constraints=eval" in repr(
        TagChain(TAGS, constraints="eval")
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": TAGS, "constraints": "sometimes"}, "constraints must be one of"),
        ({"tags": TAGS, "scheme": "BILOU"}, "scheme must be one of"),
        ({"tags": ["O", "person"]}, "'person' at 1"),
        ({"tags": ["O", "O"]}, "tags must differ"),
    ],
)
def test_bad_arguments(options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        TagChain(**options)


def test_spans_are_found():
    layer = SpanChain(["O", "person", "place"], longest=2, init_std=0.0)
    emissions = torch.full((2, 4, 3), -5.0)
    emissions[0, :2, 1] = emissions[0, 2, 0] = emissions[0, 3, 2] = emissions[1, :, 0] = 5.0
    with torch.no_grad():
        layer.durations.scores[1] = 2.0  # of segments of two
    lengths = torch.tensor([4, 1])
    assert layer.decode(emissions, lengths) == [[Span(0, 2, "person"), Span(3, 4, "place")], []]
    mask = torch.arange(4) < lengths.unsqueeze(-1)
    assert layer.decode(emissions, mask=mask) == layer.decode(emissions, lengths)
    assert layer.durations.allowed[:, 0].tolist() == [True, False]
