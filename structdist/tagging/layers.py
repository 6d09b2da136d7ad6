"""Layers whose states have names: chains of tags, and of spans."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from structdist.nn import LinearChain, SemiMarkov
from structdist.tagging.decoding import decode
from structdist.tagging.schemes import OUTSIDE, allowed_transitions, require_names
from structdist.tagging.spans import Span, spans_from_segments

CONSTRAINTS = ("always", "eval", "never")


class TagChain(LinearChain):
    """A `LinearChain` over named tags, which keeps to the rules of their scheme.

    Args:
        tags: the names of all `K` tags, in the order of their numbers; see `tag_names`.
        scheme: IOB1, BIO or BIOES; None if any tag may follow any other (parts of speech, say).
        constraints: when ill-formed sequences are forbidden: "always", in "eval" mode alone (they
            are free in training, as after `layer.train()`, and forbidden after `layer.eval()`,
            where ill-formed gold tags have no loss but raise an error), or "never". What is learnt
            does not depend on it: the state dict of one layer loads into another of the same tags.
        start, end: whether to learn scores `[K]` of the first and of the last tag.
        init_std, device, dtype: as in `LinearChain`.

    Example:
        >>> import torch
        >>> from structdist import tagging
        >>> tags = tagging.tag_names(["person", "place"], "BIO")
        >>> crf = tagging.TagChain(tags, "BIO")
        >>> emissions = torch.zeros(1, 3, len(tags))
        >>> emissions[0, 1, tags.index("I-place")] = 9.0  # which only a B-place can precede
        >>> crf.decode(emissions)[0][:2]
        ['B-place', 'I-place']
        >>> gold = tagging.encode([["B-place", None, "O"]], tags)  # None is unknown
        >>> loss = crf.loss(emissions, gold, ignore_index=-100)
    """

    def __init__(
        self,
        tags: Sequence[str],
        scheme: str | None = "BIO",
        *,
        constraints: str = "always",
        start: bool = True,
        end: bool = True,
        init_std: float = 0.1,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        require_names("tags", tags)
        if constraints not in CONSTRAINTS:
            raise ValueError(
                f"constraints must be one of {', '.join(CONSTRAINTS)}, got {constraints!r}"
            )
        masks = {} if scheme is None else allowed_transitions(tags, scheme)._asdict()
        super().__init__(
            len(tags), start=start, end=end, **masks, init_std=init_std, device=device, dtype=dtype
        )
        self.tags, self.scheme, self.constraints = list(tags), scheme, constraints

    @property
    def _masks_hold(self) -> bool:
        return self.constraints == "always" or (self.constraints == "eval" and not self.training)

    def decode(
        self, emissions: Tensor, lengths: Tensor | None = None, *, mask: Tensor | None = None
    ) -> list[list[str]]:
        """The names of the best tags of each sentence, in a list as long as the sentence.

        `tagging.decode(layer(emissions, lengths))` gives their numbers instead, and
        `tagging.confidence` of the same how probable each of them is.
        """
        return decode(self(emissions, lengths, mask=mask), self.tags)

    def extra_repr(self) -> str:
        """What `repr` says of the layer."""
        return f"{super().extra_repr()}, scheme={self.scheme}, constraints={self.constraints}"


class SpanChain(SemiMarkov):
    """A `SemiMarkov` over named spans, and tokens outside of any.

    Args:
        labels: the names of all `K` labels, in the order of their numbers. `O`, if it is among
            them, is that of single tokens outside of any span.
        longest: the most tokens that a span may have.
        durations, start, end, init_std, device, dtype: as in `SemiMarkov`.

    Example:
        >>> import torch
        >>> from structdist import tagging
        >>> crf = tagging.SpanChain(["O", "person", "place"], longest=4)
        >>> spans, lengths = [[(0, 2, "person")], []], torch.tensor([3, 1])
        >>> segments = tagging.segments_from_spans(spans, lengths, crf.labels, longest=4)
        >>> emissions = torch.zeros(2, 3, 3)
        >>> emissions[0, :2, 1] = emissions[0, 2, 0] = emissions[1, :, 0] = 9.0
        >>> loss = crf.loss(emissions, *segments, lengths)
        >>> crf.decode(emissions, lengths)[1]
        []
    """

    def __init__(
        self,
        labels: Sequence[str],
        longest: int,
        *,
        durations: str = "table",
        start: bool = True,
        end: bool = True,
        init_std: float = 0.1,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        require_names("labels", labels)
        super().__init__(
            len(labels),
            [1 if label == OUTSIDE else longest for label in labels],
            durations=durations,
            start=start,
            end=end,
            init_std=init_std,
            device=device,
            dtype=dtype,
        )
        self.labels = list(labels)

    def decode(
        self,
        emissions: Tensor,
        lengths: Tensor | None = None,
        segments: Tensor | None = None,
        *,
        mask: Tensor | None = None,
    ) -> list[list[Span]]:
        """The most probable spans of each sentence, of emissions `[B, T, K]`."""
        dist = self(emissions, lengths, segments, mask=mask)
        return spans_from_segments(*dist.labels_of(dist.argmax), self.labels, dist.lengths)
