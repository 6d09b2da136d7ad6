"""Lengths of chains: as integers, or from masks."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist import ops
from structdist.checks import require_tensor

ADVICE = "those who have a mask take structdist.lengths_from_mask(mask)"


def lengths_from_mask(mask: Tensor) -> Tensor:
    """`[*B]`: how many steps of a mask `[*B, T]`, bool or of zeros and ones, are in use.

    They must come first: a mask with holes, or with padding on the left, is an error.

    Example:
        >>> import torch
        >>> from structdist import lengths_from_mask
        >>> lengths_from_mask(torch.tensor([[1, 1, 1], [1, 0, 0]]))
        tensor([3, 1])
    """
    require_tensor("mask", mask)
    if mask.dim() < 1:
        raise ValueError(f"mask must be [*B, T], got {tuple(mask.shape)}")
    in_use = mask == 1
    if not (mask.is_meta or ops.numbers_are_hidden()):
        _require_ones_then_zeros(mask, in_use)
    return in_use.sum(-1)


def lengths_or_mask(lengths: Tensor | None, mask: Tensor | None, num_steps: int) -> Tensor | None:
    """Lengths `[*B]`, from a mask `[*B, T]` if that is what was given; None if neither was."""
    if mask is None:
        return lengths
    if lengths is not None:
        raise ValueError("lengths and mask say the same: give one of them")
    found = lengths_from_mask(mask)
    if mask.shape[-1] != num_steps:
        raise ValueError(f"mask must be [*B, {num_steps}], got {tuple(mask.shape)}")
    return found


def _require_ones_then_zeros(mask: Tensor, in_use: Tensor) -> None:
    if mask.dtype != torch.bool and not (in_use | (mask == 0)).all():
        raise ValueError("mask must hold zeros and ones")
    begins_again = (in_use[..., 1:] & ~in_use[..., :-1]).any(-1)
    if begins_again.any():
        index = tuple(begins_again.nonzero()[0].tolist())
        raise ValueError(
            f"mask must be ones and then zeros, but at batch index {index} it begins again"
        )


def integer_lengths(lengths: Tensor | None, emissions: Tensor) -> Tensor:
    """Lengths in a tensor of their own, T where none are given."""
    if lengths is None:
        *size, num_steps, _ = emissions.shape  # not new_full: inside vmap it would hide its numbers
        return torch.full(size, num_steps, device=emissions.device)
    try:
        lengths = torch.as_tensor(lengths, device=emissions.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"lengths must be integers, got {lengths!r}: {error}") from None
    if lengths.dtype == torch.bool or lengths.is_floating_point() or lengths.is_complex():
        raise ValueError(f"lengths must be integers, got {lengths.dtype} ({ADVICE})")
    _require_no_mask(lengths, emissions)
    return lengths.long().clone()  # not to change when the caller's change


def _require_no_mask(lengths: Tensor, emissions: Tensor) -> None:
    """Raise on zeros and ones over the steps, which might broadcast as if they were lengths."""
    if lengths.is_meta or ops.numbers_are_hidden():
        return  # there is nothing to look at
    *batch_shape, num_steps, _ = emissions.shape
    if lengths.shape[-1:] != (num_steps,):
        return
    pairs = zip(reversed(lengths.shape), reversed(batch_shape), strict=False)
    if lengths.dim() <= len(batch_shape) and all(a in (1, b) for a, b in pairs):
        return  # one for each chain
    if lengths.numel() > 0 and ((lengths == 0) | (lengths == 1)).all():
        raise ValueError(
            f"lengths of shape {tuple(lengths.shape)} look like a mask over the steps of "
            f"emissions {tuple(emissions.shape)}, expected {tuple(batch_shape)}: {ADVICE}"
        )
