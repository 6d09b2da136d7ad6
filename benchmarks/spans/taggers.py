"""One encoder under three structures, each with a loss and with the spans it finds.

- `linear-chain`: a state for each BIO tag, with the moves that BIO forbids forbidden.
- `semi-markov`: a label for each kind of segment; lengths have learnt scores.
- `semi-markov-ends`: the same, with scores of the first and of the last token of a segment. The
  linear chain has the former too, since B and I are states of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import pad

from benchmarks.spans.batches import Batch
from benchmarks.spans.encoder import Encoder
from structdist.tagging import (
    Span,
    SpanChain,
    TagChain,
    encode,
    segments_from_spans,
    spans_from_tags,
    tag_names,
    tags_from_spans,
)


class Tagger(nn.Module, ABC):
    """Finds spans of `labels`, the first of which is `O`, of at most `longest` tokens."""

    def __init__(self, encoder: Encoder, labels: Sequence[str], longest: int, scores: int) -> None:
        super().__init__()
        self.encoder, self.labels, self.longest = encoder, labels, longest
        self.output = nn.Linear(encoder.size, scores)

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """The mean of `-log p(spans)` over the sentences."""

    @abstractmethod
    def find(self, batch: Batch) -> list[list[Span]]:
        """The most probable spans of each sentence."""


class LinearChainTagger(Tagger):
    def __init__(self, encoder: Encoder, labels: Sequence[str], longest: int) -> None:
        tags = tag_names(labels[1:], "BIO")
        super().__init__(encoder, labels, longest, len(tags))
        self.crf = TagChain(tags, "BIO")

    def loss(self, batch: Batch) -> Tensor:
        tags = tags_from_spans([s.spans for s in batch.sentences], batch.lengths, "BIO")
        paths = encode(tags, self.crf.tags)
        return self.crf.loss(self.output(self.encoder(batch)), paths, batch.lengths)

    def find(self, batch: Batch) -> list[list[Span]]:
        return spans_from_tags(
            self.crf.decode(self.output(self.encoder(batch)), batch.lengths), "BIO"
        )


class SemiMarkovTagger(Tagger):
    scores_per_label = 1

    def __init__(self, encoder: Encoder, labels: Sequence[str], longest: int) -> None:
        super().__init__(encoder, labels, longest, self.scores_per_label * len(labels))
        self.crf = SpanChain(labels, longest)

    def scores(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Emissions [B, T, K], and those of segments [B, T, L, K], if any."""
        return self.output(self.encoder(batch)), None

    def loss(self, batch: Batch) -> Tensor:
        spans = [s.spans for s in batch.sentences]
        segments = segments_from_spans(spans, batch.lengths, self.labels, longest=self.longest)
        emissions, of_segments = self.scores(batch)
        return self.crf.loss(emissions, *segments, batch.lengths, of_segments)

    def find(self, batch: Batch) -> list[list[Span]]:
        emissions, of_segments = self.scores(batch)
        return self.crf.decode(emissions, batch.lengths, of_segments)


class SemiMarkovEndsTagger(SemiMarkovTagger):
    scores_per_label = 3

    def scores(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        inside, first, last = self.output(self.encoder(batch)).chunk(3, -1)  # [B, T, K]
        by_size = pad(last, (0, 0, 0, self.longest - 1)).unfold(1, self.longest, 1)  # [B, T, K, L]
        return inside, first.unsqueeze(2) + by_size.mT


TAGGERS: dict[str, type[Tagger]] = {
    "linear-chain": LinearChainTagger,
    "semi-markov": SemiMarkovTagger,
    "semi-markov-ends": SemiMarkovEndsTagger,
}
