"""Spans as tags, triples and segments: there and back again, and what is ill-formed."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structdist import LinearChain, SemiMarkovCRF, tagging
from structdist.tagging import Span

SCHEMES = ("IOB1", "BIO", "BIOES")
LABELS = ["O", "person", "creative-work"]
SENTENCE = [(0, 2, "person"), (2, 3, "person"), (4, 7, "creative-work"), (7, 8, "person")]
TAGS = {
    "IOB1": "I-person I-person B-person O I-creative-work I-creative-work I-creative-work I-person",
    "BIO": "B-person I-person B-person O B-creative-work I-creative-work I-creative-work B-person",
    "BIOES": "B-person E-person S-person O B-creative-work I-creative-work E-creative-work "
    "S-person",
}
over_schemes = pytest.mark.parametrize("scheme", SCHEMES)


@st.composite
def sentences(draw):
    """The spans of some sentences, and the lengths of these."""
    spans, lengths = [], []
    for _ in range(draw(st.integers(0, 3))):
        segments = draw(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(LABELS)), max_size=6))
        reached, inside = 0, []
        for size, label in segments:
            if label != tagging.OUTSIDE:
                inside.append(Span(reached, reached + size, label))
            reached += size
        spans.append(inside)
        lengths.append(reached)
    return spans, lengths


# There and back again -------------------------------------------------------------------------


@over_schemes
def test_tags_of_a_sentence(scheme: str):
    tags = TAGS[scheme].split()
    assert tagging.tags_from_spans([SENTENCE], [8], scheme) == [tags]
    assert tagging.spans_from_tags([tags], scheme) == [SENTENCE]


@over_schemes
@given(sentences())
def test_tags_round_trip(scheme: str, drawn):
    spans, lengths = drawn
    tags = tagging.tags_from_spans(spans, lengths, scheme)
    assert [len(sentence) for sentence in tags] == lengths
    assert tagging.spans_from_tags(tags, scheme) == spans


@given(sentences())
def test_segments_round_trip(drawn):
    spans, lengths = drawn
    numbers, starts = tagging.segments_from_spans(spans, lengths, LABELS, longest=4)
    assert numbers.shape == starts.shape == (len(spans), max(lengths, default=0))
    assert tagging.spans_from_segments(numbers, starts, LABELS, lengths) == spans


@given(sentences())
def test_events_round_trip(drawn):
    spans, lengths = drawn
    events = tagging.events_from_spans(spans, lengths, LABELS, longest=4)
    assert tagging.spans_from_events(events, LABELS, torch.tensor(lengths)) == spans


def test_spans_may_come_in_any_order():
    assert tagging.tags_from_spans([SENTENCE[::-1]], [8]) == [TAGS["BIO"].split()]


def test_segments_are_those_of_a_chain():
    """Segments and events are what `SemiMarkovCRF` takes and gives, O tokens one by one."""
    lengths = torch.tensor([8, 3, 0])
    spans = [SENTENCE, [(1, 3, "person")], []]
    segments = tagging.segments_from_spans(spans, lengths, LABELS, longest=3)
    assert segments.labels[0].tolist() == [1, 1, 1, 0, 2, 2, 2, 1]
    assert segments.starts[0].tolist() == [True, False, True, True, True, False, False, True]
    assert segments.starts[1].tolist() == [True, True, *[False] * 6]

    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 8, 3, generator=generator)
    crf = SemiMarkovCRF(scores, scores[0, :3], scores[1, :3], lengths)
    events = tagging.events_from_spans(spans, lengths, LABELS, longest=3)
    assert torch.equal(crf.event_of(*segments), events)
    assert torch.equal(crf.log_prob(events), crf.log_prob(segments))
    mode = crf.mode
    found = tagging.spans_from_events(mode, LABELS, lengths)
    assert tagging.spans_from_segments(*crf.labels_of(mode), LABELS, lengths) == found


def test_labels_without_outside_tile():
    chords = [[(0, 2, "C"), (2, 5, "G")]]
    segments = tagging.segments_from_spans(chords, [5], ["G", "C"])
    assert tagging.spans_from_segments(*segments, ["G", "C"]) == chords


def test_long_segments_outside_are_no_spans():
    numbers = torch.tensor([[0, 0, 1, 0]])
    starts = torch.tensor([[True, False, True, True]])
    assert tagging.spans_from_segments(numbers, starts, LABELS) == [[(2, 3, "person")]]


# Allowed transitions --------------------------------------------------------------------------


@over_schemes
def test_masks_allow_well_formed_tags_alone(scheme: str):
    """Every sequence of up to three tags: the masks and the reader of tags agree."""
    names = tagging.tag_names(["x", "y-z"], scheme)
    allowed, start, end = tagging.allowed_transitions(names, scheme)
    for length in (1, 2, 3):
        for path in product(range(len(names)), repeat=length):
            moves = all(allowed[i, j] for i, j in pairwise(path))
            masked_in = bool(moves and start[path[0]] and end[path[-1]])
            assert is_well_formed([names[k] for k in path], scheme) == masked_in


def is_well_formed(tags: list[str], scheme: str) -> bool:
    try:
        tagging.spans_from_tags([tags], scheme)
    except ValueError:
        return False
    return True


@over_schemes
def test_well_formed_tags_and_segmentations_are_one_to_one(scheme: str):
    """A chain within the masks counts as many paths as there are sets of spans."""
    names = tagging.tag_names(["x", "y"], scheme)
    masks = tagging.allowed_transitions(names, scheme)
    layer = LinearChain(len(names), **masks._asdict(), init_std=0.0)
    count = layer(torch.zeros(5, len(names), dtype=torch.float64)).log_partition.exp()
    longest_outside = torch.zeros(5, 3, dtype=torch.float64)
    longest_outside[1:, 0] = -torch.inf
    no_scores = torch.zeros(5, 3, dtype=torch.float64), torch.zeros(3, 3, dtype=torch.float64)
    segmentations = SemiMarkovCRF(*no_scores, longest_outside).log_partition.exp()
    assert count.item() == pytest.approx(segmentations.item())


def test_masks_of_bio():
    names = ["I-x", "O", "B-y", "B-x", "I-y"]
    allowed, start, end = tagging.allowed_transitions(names)
    to_inside = {("B-x", "I-x"), ("I-x", "I-x"), ("B-y", "I-y"), ("I-y", "I-y")}
    for (i, before), (j, tag) in product(enumerate(names), repeat=2):
        assert allowed[i, j] == (tag[0] != "I" or (before, tag) in to_inside)
    assert start.tolist() == [False, True, True, True, False]
    assert end.all()


def test_tag_names():
    assert tagging.tag_names(["x"], "BIO") == ["O", "B-x", "I-x"]
    assert tagging.tag_names(["x"], "BIOES") == ["O", "B-x", "I-x", "E-x", "S-x"]
    assert tagging.allowed_transitions([]).allowed.shape == (0, 0)


# Ill-formed -----------------------------------------------------------------------------------

ILL_FORMED = [
    ("BIO", "O I-x", r"position 1, tag 'I-x': .* after B-x or I-x, not O"),
    ("BIO", "I-x", r"position 0, tag 'I-x': .* not at the start"),
    ("BIO", "B-x I-y", r"position 1, tag 'I-y': .* after B-y or I-y, not B-x"),
    ("BIO", "O S-x", r"position 1, tag 'S-x': .* one of B, I with a dash"),
    ("BIO", "B-", r"position 0, tag 'B-'"),
    ("BIO", "B", r"position 0, tag 'B'"),
    ("BIO", "Bx-y", r"position 0, tag 'Bx-y'"),
    ("IOB1", "O B-x", r"position 1, tag 'B-x': .* after B-x or I-x, not O"),
    ("IOB1", "I-y B-x", r"position 1, tag 'B-x': .* not I-y"),
    ("BIOES", "B-x O", r"position 1, tag 'O': B-x must be followed by I-x or E-x, not O"),
    ("BIOES", "B-x I-x", r"position 1, tag 'I-x': I-x must be followed by .* not by the end"),
    ("BIOES", "S-x E-x", r"position 1, tag 'E-x': .* after B-x or I-x, not S-x"),
    ("BIOES", "B-x S-x", r"position 1, tag 'S-x': B-x must be followed"),
]


@pytest.mark.parametrize(("scheme", "tags", "message"), ILL_FORMED)
def test_ill_formed_tags(scheme: str, tags: str, message: str):
    with pytest.raises(ValueError, match=f"tags: sentence 1, {message}"):
        tagging.spans_from_tags([["O"], tags.split()], scheme)


@pytest.mark.parametrize("tag", [None, 3, ["B-x"]])
def test_tags_that_are_no_strings(tag):
    with pytest.raises(ValueError, match="sentence 0, position 1"):
        tagging.spans_from_tags([["O", tag]])


def test_one_sentence_in_place_of_a_batch():
    with pytest.raises(ValueError, match="sentence 0 must be a sequence of tags, got 'B-x'"):
        tagging.spans_from_tags(["B-x", "I-x"])


def test_unknown_scheme():
    for act in (
        lambda: tagging.spans_from_tags([], "IOB2"),
        lambda: tagging.tags_from_spans([], [], "bio"),
        lambda: tagging.tag_names(["x"], "BILOU"),
        lambda: tagging.allowed_transitions(["O"], ""),
    ):
        with pytest.raises(ValueError, match="scheme must be one of IOB1, BIO, BIOES"):
            act()


BAD_SPANS = [
    ([(0, 2, "person"), (1, 3, "person")], r"\(1, 3, 'person'\): overlaps with \(0, 2, 'person'\)"),
    ([(2, 3, "person"), (2, 3, "person")], "overlaps"),
    ([(3, 5, "person")], r"\(3, 5, 'person'\): .* 0 <= start < end <= 4"),
    ([(-1, 1, "person")], "0 <= start"),
    ([(2, 2, "person")], "start < end"),
    ([(0.5, 2, "person")], "must be integers"),
    ([(0, 1, "O")], "the label must be a string other than"),
    ([(0, 1, 7)], "the label must be a string"),
    ([(0, 1)], r"\(0, 1\) is not a triple"),
    ([7], "7 is not a triple"),
]


@pytest.mark.parametrize(("spans", "message"), BAD_SPANS)
def test_bad_spans(spans, message: str):
    both = [[], spans], [2, 4]
    with pytest.raises(ValueError, match=f"spans: sentence 1.*{message}"):
        tagging.tags_from_spans(*both)
    with pytest.raises(ValueError, match=f"spans: sentence 1.*{message}"):
        tagging.segments_from_spans(*both, LABELS)


def test_gaps_unknown_labels_and_long_spans():
    chords = ["C", "G"]
    with pytest.raises(ValueError, match=r"sentence 0: tokens 1\.\.2 are in no span, and 'O'"):
        tagging.segments_from_spans([[(0, 1, "C"), (3, 4, "G")]], [4], chords)
    with pytest.raises(ValueError, match=r"sentence 0: tokens 1\.\.3 are in no span"):
        tagging.segments_from_spans([[(0, 1, "C")]], [4], chords)
    with pytest.raises(ValueError, match=r"sentence 0, \(0, 4, 'F'\): the label is none of C, G"):
        tagging.segments_from_spans([[(0, 4, "F")]], [4], chords)
    for convert in (tagging.segments_from_spans, tagging.events_from_spans):
        with pytest.raises(ValueError, match=r"\(0, 4, 'C'\): is longer than the 3 tokens"):
            convert([[(0, 4, "C")]], [4], chords, longest=3)
        with pytest.raises(ValueError, match="longest must be 1 or more, got 0"):
            convert([[]], [0], chords, longest=0)


@pytest.mark.parametrize(
    ("numbers", "starts", "message"),
    [
        ([[0, 1]], [[1, 0]], "starts: sentence 0, position 1: a segment of person must begin"),
        ([[1, 1]], [[0, 1]], "starts: sentence 0, position 0: .* after the start of the sentence"),
        ([[0, 3]], [[1, 1]], r"numbers: sentence 0, position 1: 3 is not in 0\.\.2"),
        ([[0, -1]], [[1, 1]], "numbers: sentence 0, position 1: -1"),
        ([0, 1], [1, 1], r"must be \[B, T\] both"),
        ([[0, 1]], [[1]], r"must be \[B, T\] both"),
    ],
)
def test_bad_segments(numbers, starts, message: str):
    with pytest.raises(ValueError, match=message):
        tagging.spans_from_segments(torch.tensor(numbers), torch.tensor(starts).bool(), LABELS)


def test_bad_types_of_segments():
    whole, mask = torch.tensor([[0]]), torch.tensor([[True]])
    with pytest.raises(ValueError, match="numbers must be integers"):
        tagging.spans_from_segments(whole.float(), mask, LABELS)
    with pytest.raises(ValueError, match="starts must be bool"):
        tagging.spans_from_segments(whole, whole, LABELS)
    with pytest.raises(ValueError, match="events must be a tensor"):
        tagging.spans_from_events([[0]], LABELS)
    with pytest.raises(ValueError, match=r"events must be \[B, T, L, 3\]"):
        tagging.spans_from_events(torch.zeros(1, 2, 2, 4), LABELS)


def test_events_that_do_not_tile():
    events = tagging.events_from_spans([[(0, 2, "person")]] * 2, [3, 3], LABELS, longest=2)
    events[1, 2] = 0  # a gap
    with pytest.raises(ValueError, match="events: sentence 1: its segments must cover each token"):
        tagging.spans_from_events(events, LABELS)
    events[1, 1, 1, 0] = 1  # an overlap
    with pytest.raises(ValueError, match="events: sentence 1"):
        tagging.spans_from_events(events, LABELS)


def test_bad_lengths():
    with pytest.raises(ValueError, match="lengths must be those of all 1 sentences, got 2"):
        tagging.tags_from_spans([[]], [1, 2])
    with pytest.raises(ValueError, match="lengths must be those of all 1 sentences, got none"):
        tagging.tags_from_spans([[]], None)
    with pytest.raises(ValueError, match="lengths must be 0 or more, got -1 for sentence 0"):
        tagging.tags_from_spans([[]], [-1])
    segments = torch.tensor([[0]]), torch.tensor([[True]])
    with pytest.raises(ValueError, match=r"lengths must be in 0\.\.1, got 2 for sentence 0"):
        tagging.spans_from_segments(*segments, LABELS, [2])


def test_bad_names():
    with pytest.raises(ValueError, match="labels must differ from each other, but hold 'x' twice"):
        tagging.tag_names(["x", "y", "x"])
    with pytest.raises(ValueError, match="labels are those of spans"):
        tagging.tag_names(["O", "x"])
    with pytest.raises(ValueError, match="labels must be a sequence of strings"):
        tagging.segments_from_spans([[]], [0], "person")
    with pytest.raises(ValueError, match="tags: 'x' at 1: a tag of the scheme BIO is"):
        tagging.allowed_transitions(["O", "x"])
    with pytest.raises(ValueError, match="tags must differ"):
        tagging.allowed_transitions(["O", "O"])


@pytest.mark.parametrize(
    ("scheme", "tags", "never"),
    [
        ("BIO", ["O", "B-x", "I-y"], "I-y"),
        ("IOB1", ["O", "B-x", "I-y"], "B-x"),
        ("BIOES", ["O", "B-x", "S-x", "I-y", "E-y"], "B-x, I-y, E-y"),
    ],
)
def test_tags_that_no_sequence_can_have(scheme, tags, never):
    with pytest.raises(ValueError, match=f"the scheme {scheme} has {never}, because"):
        tagging.allowed_transitions(tags, scheme)
    assert tagging.allowed_transitions(["O", "B-x"]).allowed.all()  # spans of one token
