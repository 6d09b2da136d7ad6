"""What the layers of all chains learn: scores of moves, and of where a chain starts and ends."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structdist import ops
from structdist.base import StructuredDistribution
from structdist.checks import require_bool, require_number, require_range, require_tensor


class LearntMoves(nn.Module):
    """Learnable scores of the moves between `K` states, and on request of the first and last one.

    The arguments are those of `LinearChain`. Subclasses call `reset_parameters` when they have made
    what they learn themselves. The masks are no part of the state dict: they come with the
    arguments, and what was learnt without them loads into a layer that has them.
    """

    allowed: Tensor | None
    allowed_start: Tensor | None
    allowed_end: Tensor | None

    def __init__(
        self,
        num_states: int,
        start: bool,
        end: bool,
        allowed: Tensor | None,
        allowed_start: Tensor | None,
        allowed_end: Tensor | None,
        init_std: float,
        device: torch.device | str | int | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
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

    def _keep_mask(self, name: str, mask: Tensor | None, shape: tuple[int, ...]) -> None:
        """Register a copy of a mask as a buffer on the device of the parameters."""
        if mask is not None:
            require_bool(name, mask)
            if mask.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {tuple(mask.shape)}")
            mask = mask.to(self.transitions.device, copy=True)
        self.register_buffer(name, mask, persistent=False)

    def reset_parameters(self) -> None:
        """Draw all scores anew from a normal distribution of deviation `init_std`."""
        for parameter in self.parameters(recurse=False):
            nn.init.normal_(parameter, std=self.init_std)

    @property
    def _masks_hold(self) -> bool:
        """Do the masks forbid anything, as things are?"""
        return True

    def _allowed_transitions(self) -> Tensor:
        """[K, K]: -inf where a move is forbidden."""
        return forbid(self.transitions, self.allowed if self._masks_hold else None)

    def _allowed_start(self) -> Tensor | None:
        return self._end_scores(self.start, self.allowed_start)

    def _allowed_end(self) -> Tensor | None:
        return self._end_scores(self.end, self.allowed_end)

    def _end_scores(self, scores: Tensor | None, allowed: Tensor | None) -> Tensor | None:
        """Scores [K] of the first or last state; None where nothing is learnt or forbidden."""
        allowed = allowed if self._masks_hold else None
        if scores is None and allowed is not None:
            scores = self.transitions.new_zeros(len(self.transitions))
        return None if scores is None else forbid(scores, allowed)

    def _require_emissions(self, emissions: Tensor) -> None:
        require_tensor("emissions", emissions)
        num_states = len(self.transitions)
        if emissions.dim() < 2 or emissions.shape[-1] != num_states:
            raise ValueError(
                f"emissions must be [*B, T, {num_states}], got {tuple(emissions.shape)}"
            )


def forbid(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Scores with -inf where a mask does not allow them."""
    return scores if allowed is None else torch.where(allowed, scores, -torch.inf)


def require_shape_of_paths(name: str, x: Tensor, batch_shape: torch.Size, num_steps: int) -> None:
    """Raise unless `x` is [*B, T]: what would broadcast to it is more likely a mistake."""
    wanted = (*batch_shape, num_steps)
    if x.shape != wanted:
        raise ValueError(f"{name} must have shape {wanted}, got {tuple(x.shape)}")


def hide_ignored(
    name: str, x: Tensor, ignore_index: int, highest: int, dist: StructuredDistribution
) -> Tensor:
    """Integers `[*B, T]`, -1 where they are ignored; the others must lie in 0..highest."""
    ignored = x == ignore_index
    if dist._validating:
        active = ops.in_chain(dist.lengths, x.shape[-1])
        require_range(name, torch.where(ignored, 0, x), 0, highest, active)
    return torch.where(ignored, -1, x)


def partial_loss(name: str, log_evidence: Tensor, dist: StructuredDistribution) -> Tensor:
    """The mean loss of partial labels, given their log probabilities [*B]."""
    impossible = log_evidence == -torch.inf
    if dist._validating and impossible.any():
        index = tuple(impossible.nonzero()[0].tolist())
        raise ValueError(f"{name} at batch index {index} are on no allowed path")
    return mean_over_batch(-log_evidence)


def mean_over_batch(losses: Tensor) -> Tensor:
    """The mean of losses [*B]; 0 of a batch without chains."""
    return losses.mean() if losses.numel() > 0 else losses.sum()
