"""A layer that learns the transitions of a chain, and turns scores into a `LinearChainCRF`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from structdist.checks import require_count, require_integers
from structdist.lengths import lengths_or_mask
from structdist.linear_chain import LinearChainCRF
from structdist.nn.moves import (
    LearntMoves,
    hide_ignored,
    mean_over_batch,
    partial_loss,
    require_shape_of_paths,
)


class LinearChain(LearntMoves):
    """Learnable scores of the moves between states, and on request of the first and last state.

    A tagger is two lines, and its decoder a third:

        crf = LinearChain(num_tags)
        loss = crf.loss(encoder(words), tags, lengths)    # emissions [*B, T, K], tags [*B, T]
        tags = crf(encoder(words), lengths).argmax        # [*B, T]

    Args:
        num_states: the number of states `K`.
        start, end: whether to learn scores `[K]` of the first and of the last state.
        allowed: bool `[K, K]`, which moves from i to j may be made (in BIO tagging, all but those
            from O to I). The others are forbidden, whatever is learnt.
        allowed_start, allowed_end: bool `[K]`, the same for the first and the last state. They
            hold with or without learnt scores.
        init_std: the standard deviation of the initial scores, whose mean is 0.
        device, dtype: where the parameters are made and in which precision, as in the layers of
            torch. The masks are copied to the same device.
    """

    def __init__(
        self,
        num_states: int,
        *,
        start: bool = False,
        end: bool = False,
        allowed: Tensor | None = None,
        allowed_start: Tensor | None = None,
        allowed_end: Tensor | None = None,
        init_std: float = 0.1,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        require_count("num_states", num_states)
        masks = allowed, allowed_start, allowed_end
        super().__init__(num_states, start, end, *masks, init_std, device, dtype)
        self.num_states = num_states
        self.reset_parameters()

    def forward(
        self, emissions: Tensor, lengths: Tensor | None = None, *, mask: Tensor | None = None
    ) -> LinearChainCRF:
        """The distribution over paths, given emissions `[*B, T, K]` and lengths `[*B]`.

        Those who have a mask of tokens `[*B, T]` give it instead of lengths.
        """
        self._require_emissions(emissions)
        return LinearChainCRF(
            emissions,
            self._allowed_transitions(),
            lengths_or_mask(lengths, mask, emissions.shape[-2]),
            start=self._allowed_start(),
            end=self._allowed_end(),
        )

    if TYPE_CHECKING:  # `nn.Module` has it return Any.

        def __call__(
            self, emissions: Tensor, lengths: Tensor | None = None, *, mask: Tensor | None = None
        ) -> LinearChainCRF: ...

    def loss(
        self,
        emissions: Tensor,
        tags: Tensor,
        lengths: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        ignore_index: int | None = None,
    ) -> Tensor:
        """The mean over the batch of `-log p(tags)`, a scalar, for integer tags `[*B, T]`.

        Tags that equal `ignore_index` (-100, say) are unknown: the loss is that of the others, and
        adds up all paths that have these. Without it every tag within the lengths must be known.
        Tags beyond the lengths do not matter. Tags that the masks forbid raise a `ValueError` that
        names the first offending chain, and the step and move if all are known; without validation
        the loss is inf. The loss of a batch without chains is 0.
        """
        dist = self(emissions, lengths, mask=mask)
        require_integers("tags", tags)
        require_shape_of_paths("tags", tags, dist.batch_shape, dist.event_shape[0])
        if ignore_index is None:
            return mean_over_batch(-dist.log_prob(tags, strict=dist._validating))
        known = hide_ignored("tags", tags, ignore_index, self.num_states - 1, dist)
        return partial_loss("tags", dist.log_evidence(known), dist)

    def extra_repr(self) -> str:
        """What `repr` says of the layer."""
        return f"{self.num_states}, start={self.start is not None}, end={self.end is not None}"
