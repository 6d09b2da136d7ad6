"""A layer that learns the transitions of a chain, and turns scores into a `LinearChainCRF`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from structdist.checks import require_bool, require_integers, require_number, require_tensor
from structdist.linear_chain import LinearChainCRF


class LinearChain(nn.Module):
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

    allowed: Tensor | None
    allowed_start: Tensor | None
    allowed_end: Tensor | None

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
        super().__init__()
        if isinstance(num_states, bool) or not isinstance(num_states, int) or num_states < 1:
            raise ValueError(f"num_states must be an integer from 1 up, got {num_states!r}")
        self.num_states = num_states
        self.init_std = require_number("init_std", init_std)
        if not 0 <= self.init_std < math.inf:  # NaN included
            raise ValueError(f"init_std must be finite and not negative, got {init_std}")

        def learnt(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))

        self.transitions = learnt(num_states, num_states)
        self.start = learnt(num_states) if start else None
        self.end = learnt(num_states) if end else None
        self._keep_mask("allowed", allowed, (num_states, num_states))
        self._keep_mask("allowed_start", allowed_start, (num_states,))
        self._keep_mask("allowed_end", allowed_end, (num_states,))
        self.reset_parameters()

    def _keep_mask(self, name: str, mask: Tensor | None, shape: tuple[int, ...]) -> None:
        """Register a copy of a mask as a buffer on the device of the parameters."""
        if mask is not None:
            require_bool(name, mask)
            if mask.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {tuple(mask.shape)}")
            mask = mask.to(self.transitions.device, copy=True)
        self.register_buffer(name, mask)

    def reset_parameters(self) -> None:
        """Draw all scores anew from a normal distribution of deviation `init_std`."""
        for parameter in self.parameters(recurse=False):
            nn.init.normal_(parameter, std=self.init_std)

    def forward(self, emissions: Tensor, lengths: Tensor | None = None) -> LinearChainCRF:
        """The distribution over paths, given emissions `[*B, T, K]` and lengths `[*B]`."""
        require_tensor("emissions", emissions)
        if emissions.dim() < 2 or emissions.shape[-1] != self.num_states:
            raise ValueError(
                f"emissions must be [*B, T, {self.num_states}], got {tuple(emissions.shape)}"
            )
        transitions = _forbid(self.transitions, self.allowed)
        start = self._end_scores(self.start, self.allowed_start)
        end = self._end_scores(self.end, self.allowed_end)
        return LinearChainCRF(emissions, transitions, lengths, start=start, end=end)

    if TYPE_CHECKING:  # `nn.Module` has it return Any.

        def __call__(self, emissions: Tensor, lengths: Tensor | None = None) -> LinearChainCRF: ...

    def loss(self, emissions: Tensor, tags: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The mean over the batch of `-log p(tags)`, a scalar, for integer tags `[*B, T]`.

        Tags beyond the lengths do not matter. Tags that the masks forbid raise a `ValueError` that
        names the first offending chain, step and move; without validation the loss is inf. The
        loss of a batch without chains is 0.
        """
        dist = self(emissions, lengths)
        require_integers("tags", tags)
        if tags.shape != dist.batch_shape + dist.event_shape[:1]:
            wanted = (*dist.batch_shape, dist.event_shape[0])
            raise ValueError(f"tags must have shape {wanted}, got {tuple(tags.shape)}")
        losses = -dist.log_prob(tags, strict=dist._validating)
        return losses.mean() if losses.numel() > 0 else losses.sum()

    def _end_scores(self, scores: Tensor | None, allowed: Tensor | None) -> Tensor | None:
        """Scores `[K]` of the first or last state; None where nothing is learnt or forbidden."""
        if scores is None and allowed is not None:
            scores = self.transitions.new_zeros(self.num_states)
        return None if scores is None else _forbid(scores, allowed)

    def extra_repr(self) -> str:
        """What `repr` says of the layer."""
        return f"{self.num_states}, start={self.start is not None}, end={self.end is not None}"


def _forbid(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Scores with -inf where a mask does not allow them."""
    return scores if allowed is None else torch.where(allowed, scores, -torch.inf)
