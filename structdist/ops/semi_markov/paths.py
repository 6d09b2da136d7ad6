"""Segmentations in integers.

At each step of a path stands the label k of its segment, in 0..K-1 if the segment begins there, and
as K + k if it began before (tags B-k and I-k, in the words of tagging). So with segments of length
one alone a path is that of a linear chain.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import in_chain


class Segments(NamedTuple):
    """What a path [..., T] says at each step, zeros and False in the padding."""

    label: Tensor  # [..., T]: in 0..K-1
    begins: Tensor  # [..., T]: does a segment begin here?
    size: Tensor  # [..., T]: how many steps there are from here to the end of the segment
    is_path: Tensor  # [...]: is this a segmentation, with segments of at most L steps?


def read_paths(paths: Tensor, lengths: Tensor, longest: int, num_labels: int) -> Segments:
    """Read paths [..., N, T] of chains of lengths [N], whatever they hold."""
    num_steps = paths.shape[-1]
    active = in_chain(lengths, num_steps)
    known = (paths >= 0) & (paths < 2 * num_labels)
    label = torch.where(known & active, paths % num_labels, 0)
    begins = known & active & (paths < num_labels)
    steps = torch.arange(num_steps, device=paths.device)
    places = torch.where(begins, steps, lengths.unsqueeze(-1))
    from_here = places.flip(-1).cummin(-1).values.flip(-1)  # the next beginning, or the end
    beyond = lengths.unsqueeze(-1).expand_as(from_here[..., :1])
    following = torch.cat([from_here[..., 1:], beyond], -1)
    before = torch.cat([torch.full_like(label[..., :1], -1), label[..., :-1]], -1)
    goes_on = known & ~begins & (label == before)
    size = following - steps
    fits = (begins & (size <= longest)) | goes_on | ~active
    return Segments(label, begins, size, fits.all(-1))
