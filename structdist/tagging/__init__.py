"""Tagging: tags and spans in all their forms, and what a chain says of each token.

`schemes` says which tags may follow which, `spans` turns tags, triples and segments into each
other, `decoding` makes lists of labels and their probabilities out of distributions, and `layers`
has those whose states have names.
"""

from structdist.tagging.decoding import confidence, decode, encode
from structdist.tagging.layers import SpanChain, TagChain
from structdist.tagging.schemes import (
    OUTSIDE,
    AllowedTransitions,
    allowed_transitions,
    tag_names,
)
from structdist.tagging.spans import (
    Span,
    events_from_spans,
    segments_from_spans,
    spans_from_events,
    spans_from_segments,
    spans_from_tags,
    tags_from_spans,
)

__all__ = [
    "OUTSIDE",
    "AllowedTransitions",
    "Span",
    "SpanChain",
    "TagChain",
    "allowed_transitions",
    "confidence",
    "decode",
    "encode",
    "events_from_spans",
    "segments_from_spans",
    "spans_from_events",
    "spans_from_segments",
    "spans_from_tags",
    "tag_names",
    "tags_from_spans",
]
