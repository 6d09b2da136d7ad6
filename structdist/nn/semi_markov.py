"""A layer that learns the moves and durations of segments, and makes a `SemiMarkovCRF`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from structdist.checks import require_bool, require_count, require_integers
from structdist.lengths import lengths_or_mask
from structdist.nn.durations import KINDS
from structdist.nn.moves import (
    LearntMoves,
    hide_ignored,
    mean_over_batch,
    partial_loss,
    require_shape_of_paths,
)
from structdist.semi_markov import SemiMarkovCRF


class SemiMarkov(LearntMoves):
    """Learnable scores of the moves between segments and of their lengths.

    A tagger of spans, whose label 0 is that of single words outside of any span:

        crf = SemiMarkov(num_labels, max_duration=[1] + [8] * (num_labels - 1))
        loss = crf.loss(encoder(words), labels, starts, lengths)    # emissions [*B, T, K]
        dist = crf(encoder(words), lengths)
        labels, starts = dist.labels_of(dist.argmax)                # [*B, T] each

    Args:
        num_labels: the number of labels `K`.
        max_duration: the longest segment of all labels, or `[K]`, of each of them. The largest is
            `L`. What is longer is forbidden.
        durations: what is learnt about the length `l` of a segment, in a module of that name:

            - "table": `durations.scores` `[L, K]`, of each length and label, not normalised;
            - "poisson": `l - 1` follows a Poisson distribution, `durations.log_rate` `[K]`;
            - "negative-binomial": `durations.log_count` and `durations.logits`, `[K]` each, with
              the names and meanings of `torch.distributions.NegativeBinomial`;
            - "geometric": `durations.logits` `[K]`, as in `torch.distributions.Geometric`.

            The latter three are log probabilities of lengths given that they are allowed (that is,
            truncated at `max_duration` and normalised), and start at `l - 1` of mean about 1.
        allow_self_transitions: whether a segment may follow one of the same label. If not, the
            diagonal of the transitions is forbidden, whatever is learnt.
        start, end: whether to learn scores `[K]` of the label of the first and the last segment.
        allowed: bool `[K, K]`, which label j may follow i. The others are forbidden.
        allowed_start, allowed_end: bool `[K]`, the same for the first and the last segment.
        init_std: the standard deviation of the initial parameters, whose mean is 0.
        device, dtype: where the parameters are made and in which precision, as in the layers of
            torch. The masks are copied to the same device.
    """

    def __init__(
        self,
        num_labels: int,
        max_duration: int | Sequence[int] | Tensor,
        *,
        durations: str = "table",
        allow_self_transitions: bool = True,
        start: bool = False,
        end: bool = False,
        allowed: Tensor | None = None,
        allowed_start: Tensor | None = None,
        allowed_end: Tensor | None = None,
        init_std: float = 0.1,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        require_count("num_labels", num_labels)
        longest = _longest_by_label(max_duration, num_labels)
        if not isinstance(durations, str) or durations not in KINDS:
            raise ValueError(f"durations must be one of {', '.join(KINDS)}, got {durations!r}")
        masks = allowed, allowed_start, allowed_end
        super().__init__(num_labels, start, end, *masks, init_std, device, dtype)
        self.num_labels, self.max_duration = num_labels, max(longest)
        self.allow_self_transitions = allow_self_transitions
        if not allow_self_transitions:
            self.allowed = self._without_diagonal()
        self.durations = KINDS[durations](longest, device, dtype)
        self.reset_parameters()

    def _without_diagonal(self) -> Tensor:
        """The mask of allowed moves, bool [K, K], less those from a label to itself."""
        same = torch.eye(self.num_labels, dtype=torch.bool, device=self.transitions.device)
        return ~same if self.allowed is None else self.allowed & ~same

    def reset_parameters(self) -> None:
        """Draw all parameters anew from a normal distribution of deviation `init_std`."""
        super().reset_parameters()
        for parameter in self.durations.parameters():
            nn.init.normal_(parameter, std=self.init_std)

    def forward(
        self,
        emissions: Tensor,
        lengths: Tensor | None = None,
        segments: Tensor | None = None,
        *,
        mask: Tensor | None = None,
    ) -> SemiMarkovCRF:
        """The distribution over segmentations, given emissions `[*B, T, K]` and lengths `[*B]`.

        Scores `segments` `[*B, T, L, K]`, by first step, length and label, are added on request.
        Those who have a mask of tokens `[*B, T]` give it instead of lengths.
        """
        self._require_emissions(emissions)
        return SemiMarkovCRF(
            emissions,
            self._allowed_transitions(),
            self.durations(),
            lengths_or_mask(lengths, mask, emissions.shape[-2]),
            segments=segments,
            start=self._allowed_start(),
            end=self._allowed_end(),
        )

    if TYPE_CHECKING:  # `nn.Module` has it return Any.

        def __call__(
            self,
            emissions: Tensor,
            lengths: Tensor | None = None,
            segments: Tensor | None = None,
            *,
            mask: Tensor | None = None,
        ) -> SemiMarkovCRF: ...

    def loss(
        self,
        emissions: Tensor,
        labels: Tensor,
        starts: Tensor,
        lengths: Tensor | None = None,
        segments: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        ignore_index: int | None = None,
    ) -> Tensor:
        """The mean over the batch of `-log p(labels, starts)`, a scalar.

        `labels` `[*B, T]` are integers, and `starts` `[*B, T]` bool: where a segment begins. What
        stands beyond the lengths does not matter. Labels that equal `ignore_index` (-100, say) are
        unknown, and so are starts, if these are integers (else 1 and 0): the loss is that of the
        others, and adds up all segmentations that have these. What is too long, or forbidden,
        raises a `ValueError` that names the first such chain, and the move or segment if all is
        known; without validation the loss is inf. The loss of a batch without chains is 0.
        """
        dist = self(emissions, lengths, segments, mask=mask)
        require_integers("labels", labels)
        partial = ignore_index is not None and starts.dtype != torch.bool
        (require_integers if partial else require_bool)("starts", starts)
        for name, x in (("labels", labels), ("starts", starts)):
            require_shape_of_paths(name, x, dist.batch_shape, dist.event_shape[0])
        if ignore_index is None:
            return mean_over_batch(-dist.log_prob((labels, starts), strict=dist._validating))
        labels = hide_ignored("labels", labels, ignore_index, self.num_labels - 1, dist)
        if partial:
            starts = hide_ignored("starts", starts, ignore_index, 1, dist)
        log_evidence = dist.log_evidence(labels=labels, starts=starts)
        return partial_loss("labels and starts", log_evidence, dist)

    def extra_repr(self) -> str:
        """What `repr` says of the layer, beside its durations."""
        return (
            f"{self.num_labels}, max_duration={self.max_duration}, "
            f"allow_self_transitions={self.allow_self_transitions}, "
            f"start={self.start is not None}, end={self.end is not None}"
        )


def _longest_by_label(max_duration: int | Sequence[int] | Tensor, num_labels: int) -> list[int]:
    """The longest segment of each label, from what may be one number for all of them."""
    if isinstance(max_duration, Tensor):
        require_integers("max_duration", max_duration)
        max_duration = max_duration.tolist()
    if isinstance(max_duration, Sequence) and not isinstance(max_duration, str):
        longest = list(max_duration)
    else:
        longest = [max_duration] * num_labels
    if len(longest) != num_labels:
        raise ValueError(
            f"max_duration must be an integer, or one for each of {num_labels} labels, "
            f"got {len(longest)}"
        )
    for x in longest:
        require_count("max_duration", x)
    return longest
