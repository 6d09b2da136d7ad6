"""Spans of sentences in all their forms: tags of tokens, triples, and segments of a chain.

A batch of sentences is, in each form:

- *tags*, one sequence of strings a sentence, by one of the schemes of `structdist.tagging.schemes`;
- *spans*, one sequence of triples (start, end, label) a sentence. The end is exclusive: a span
  covers the tokens `start .. end - 1`. Spans do not overlap;
- *labels and starts*, integers and bool `[B, T]`, or *events* `[B, T, L, K]`: the segments of a
  `SemiMarkovCRF`, which tile each sentence. A token outside of every span is a segment of its own,
  of the label "O", which has to be among the K labels. Without it, spans must leave no gaps.

What is ill-formed raises a `ValueError` that says in which sentence, where, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structdist.checks import require_bool, require_integers, require_tensor
from structdist.segment_events import SegmentLabels, events_of, from_labels, paths_of, tiles
from structdist.tagging.schemes import (
    OUTSIDE,
    Scheme,
    Tag,
    are_akin,
    require_names,
    scheme_named,
)

Triple = tuple[int, int, str]


class Span(NamedTuple):
    """The tokens `start .. end - 1`, and what they are."""

    start: int
    end: int
    label: str


# Tags -----------------------------------------------------------------------------------------


def spans_from_tags(tags: Sequence[Sequence[str]], scheme: str = "BIO") -> list[list[Span]]:
    """The spans of each sentence, in their order, of tags by the scheme IOB1, BIO or BIOES."""
    grammar = scheme_named(scheme)
    return [_read_tags(index, sentence, grammar) for index, sentence in enumerate(tags)]


def _read_tags(index: int, sentence: Sequence[str], scheme: Scheme) -> list[Span]:
    if isinstance(sentence, str):
        raise ValueError(f"tags: sentence {index} must be a sequence of tags, got {sentence!r}")
    spans: list[Span] = []
    before: Tag | None = None
    for position, text in enumerate(sentence):
        try:
            tag = scheme.parse(text)
        except ValueError as error:
            raise ValueError(_at(index, position, text, str(error))) from None
        fault = scheme.fault(before, tag)
        if fault is not None:
            raise ValueError(_at(index, position, text, fault))
        if tag.prefix in ("B", "S") or (tag.prefix and not are_akin(before, tag)):
            spans.append(Span(position, position + 1, tag.label))
        elif tag.prefix:
            spans[-1] = spans[-1]._replace(end=position + 1)
        before = tag
    fault = None if before is None else scheme.fault(before, None)
    if fault is not None:
        raise ValueError(_at(index, len(sentence) - 1, sentence[-1], fault))
    return spans


def _at(index: int, position: int, tag: object, why: str) -> str:
    return f"tags: sentence {index}, position {position}, tag {tag!r}: {why}"


def tags_from_spans(
    spans: Sequence[Iterable[Triple]], lengths: Sequence[int] | Tensor, scheme: str = "BIO"
) -> list[list[str]]:
    """The tags of sentences of these lengths, given the spans of each in any order."""
    grammar, every = scheme_named(scheme), []
    for sentence, length in _ordered(spans, lengths):
        tags, before = [OUTSIDE] * length, Span(0, -1, "")
        for span in sentence:
            neighbours = before.end == span.start and before.label == span.label
            prefixes = grammar.prefixes_of(span.end - span.start, neighbours)
            tags[span.start : span.end] = [str(Tag(prefix, span.label)) for prefix in prefixes]
            before = span
        every.append(tags)
    return every


# Segments -------------------------------------------------------------------------------------


def segments_from_spans(
    spans: Sequence[Iterable[Triple]],
    lengths: Sequence[int] | Tensor,
    labels: Sequence[str],
    *,
    longest: int | None = None,
) -> SegmentLabels:
    """Labels and starts, each `[B, T]`, of sentences of lengths `[B]`, the longest of which is T.

    They are zero beyond the lengths, and made on the CPU. `labels` are the names of the K labels,
    in the order of their numbers. No span may be longer than `longest` (L), if given.
    """
    require_names("labels", labels)
    if longest is not None and longest < 1:
        raise ValueError(f"longest must be 1 or more, got {longest}")
    number_of = {label: number for number, label in enumerate(labels)}
    ordered = _ordered(spans, lengths)
    shape = len(ordered), max((length for _, length in ordered), default=0)
    numbers, starts = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.bool)
    for index, (sentence, length) in enumerate(ordered):
        for span in _fill_gaps(index, sentence, length, OUTSIDE in number_of):
            if span.label not in number_of:
                raise ValueError(_of(index, span, f"the label is none of {', '.join(labels)}"))
            if longest is not None and span.end - span.start > longest:
                raise ValueError(_of(index, span, f"is longer than the {longest} tokens allowed"))
            numbers[index, span.start : span.end] = number_of[span.label]
            starts[index, span.start] = True
    return SegmentLabels(numbers, starts)


def events_from_spans(
    spans: Sequence[Iterable[Triple]],
    lengths: Sequence[int] | Tensor,
    labels: Sequence[str],
    *,
    longest: int,
) -> Tensor:
    """Events `[B, T, L, K]` of a `SemiMarkovCRF`; the arguments are as in `segments_from_spans`."""
    found = segments_from_spans(spans, lengths, labels, longest=longest)
    sizes = torch.as_tensor(lengths, dtype=torch.long)
    paths = from_labels(found.labels, found.starts, sizes, len(labels))
    return events_of(paths, sizes, longest, len(labels), torch.get_default_dtype())


def spans_from_segments(
    numbers: Tensor,
    starts: Tensor,
    labels: Sequence[str],
    lengths: Sequence[int] | Tensor | None = None,
) -> list[list[Span]]:
    """The spans of each sentence, of the numbers of labels and of starts, each `[B, T]`.

    Segments of the label "O" are no spans, however long they are. What stands beyond the lengths
    `[B]` does not matter.
    """
    require_names("labels", labels)
    require_integers("numbers", numbers)
    require_bool("starts", starts)
    if numbers.dim() != 2 or numbers.shape != starts.shape:
        shapes = f"{tuple(numbers.shape)} and {tuple(starts.shape)}"
        raise ValueError(f"numbers and starts must be [B, T] both, got {shapes}")
    sizes = _sizes(lengths, numbers.shape[0], numbers.shape[1])
    rows = zip(numbers.tolist(), starts.tolist(), sizes, strict=True)
    return [
        _read_segments(index, row[:size], begins, labels)
        for index, (row, begins, size) in enumerate(rows)
    ]


def _read_segments(
    index: int, numbers: list[int], begins: list[bool], labels: Sequence[str]
) -> list[Span]:
    segments: list[Span] = []
    for step, number in enumerate(numbers):
        where = f"sentence {index}, position {step}"
        if not 0 <= number < len(labels):
            raise ValueError(f"numbers: {where}: {number} is not in 0..{len(labels) - 1}")
        if begins[step]:
            segments.append(Span(step, step + 1, labels[number]))
        elif not segments or segments[-1].label != labels[number]:
            before = segments[-1].label if segments else "the start of the sentence"
            raise ValueError(
                f"starts: {where}: a segment of {labels[number]} must begin here, after {before}"
            )
        else:
            segments[-1] = segments[-1]._replace(end=step + 1)
    return [span for span in segments if span.label != OUTSIDE]


def spans_from_events(
    events: Tensor, labels: Sequence[str], lengths: Sequence[int] | Tensor | None = None
) -> list[list[Span]]:
    """The spans of each sentence, of events `[B, T, L, K]` of a `SemiMarkovCRF`."""
    require_tensor("events", events)
    if events.dim() != 4 or events.shape[-1] != len(labels):
        raise ValueError(f"events must be [B, T, L, {len(labels)}], got {tuple(events.shape)}")
    sizes = torch.as_tensor(_sizes(lengths, *events.shape[:2]), dtype=torch.long).to(events.device)
    wrong = ~tiles(events, sizes)
    if wrong.any():
        index = int(wrong.nonzero()[0])
        raise ValueError(f"events: sentence {index}: its segments must cover each token once")
    paths = paths_of(events, sizes)
    return spans_from_segments(paths % len(labels), paths < len(labels), labels, sizes)


# Triples --------------------------------------------------------------------------------------


def _ordered(
    spans: Sequence[Iterable[Triple]], lengths: Sequence[int] | Tensor
) -> list[tuple[list[Span], int]]:
    """The spans of each sentence by their starts, none over another, beside its length."""
    sizes = _sizes(lengths, len(spans))
    ordered = []
    for index, (sentence, length) in enumerate(zip(spans, sizes, strict=True)):
        checked = sorted(_checked(index, triple, length) for triple in sentence)
        for before, span in pairwise(checked):
            if span.start < before.end:
                raise ValueError(_of(index, span, f"overlaps with {tuple(before)}"))
        ordered.append((checked, length))
    return ordered


def _checked(index: int, triple: Any, length: int) -> Span:
    try:
        start, end, label = triple
        numbers = int(start), int(end)
    except (TypeError, ValueError):
        wanted = "is not a triple (start, end, label)"
        raise ValueError(f"spans: sentence {index}: {triple!r} {wanted}") from None
    span = Span(*numbers, label)
    if not isinstance(label, str) or label in ("", OUTSIDE):
        raise ValueError(_of(index, span, f"the label must be a string other than '', {OUTSIDE!r}"))
    if numbers != (start, end) or not 0 <= start < end <= length:
        raise ValueError(
            _of(index, span, f"start and end must be integers, 0 <= start < end <= {length}")
        )
    return span


def _fill_gaps(index: int, spans: list[Span], length: int, has_outside: bool) -> list[Span]:
    """Spans that cover each token once, with single ones of the label O between those given."""
    filled: list[Span] = []
    for span in [*spans, Span(length, length, "")]:
        reached = filled[-1].end if filled else 0
        if reached < span.start and not has_outside:
            raise ValueError(
                f"spans: sentence {index}: tokens {reached}..{span.start - 1} are in no span, and "
                f"{OUTSIDE!r} is not among the labels"
            )
        filled += [Span(step, step + 1, OUTSIDE) for step in range(reached, span.start)]
        filled.append(span)
    return filled[:-1]


def _of(index: int, span: Span, why: str) -> str:
    return f"spans: sentence {index}, {tuple(span)}: {why}"


def _sizes(
    lengths: Sequence[int] | Tensor | None, count: int, most: int | None = None
) -> list[int]:
    """The lengths of `count` sentences; without any, all have the most tokens there can be."""
    if lengths is None and most is not None:
        return [most] * count
    if lengths is None or len(lengths) != count:
        given = "none" if lengths is None else str(len(lengths))
        raise ValueError(f"lengths must be those of all {count} sentences, got {given}")
    sizes = [int(length) for length in lengths]
    for index, size in enumerate(sizes):
        if size < 0 or (most is not None and size > most):
            limit = "0 or more" if most is None else f"in 0..{most}"
            raise ValueError(f"lengths must be {limit}, got {size} for sentence {index}")
    return sizes
