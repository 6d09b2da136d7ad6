"""Semi-Markov chains: their sizes, their contenders, and right answers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from benchmarks.contenders import SEGMENT_CONTENDERS
from benchmarks.operations import SEGMENT_OPERATIONS
from benchmarks.problem import Inputs, SegmentSize, Size
from benchmarks.segment_works import REFERENCE, read_events, whole_segment_chains
from benchmarks.structure import DRAWS, Scaling, Structure
from structdist.ops.semi_markov import reference


class SemiMarkovChains(Structure):
    name = "semi-markov"
    registered_name = "semi-Markov chain"
    form = "BxTxLxK"
    axes = ("batch", "length", "longest", "states")
    size_type = SegmentSize
    usual_sizes = "16x256x16x32,100x38x8x20,8x32x4x8"
    quick_sizes = "4x12x3x4"
    usual_grid = {"batch": (100,), "length": (38,), "longest": (8,), "states": (20,)}
    scaling = Scaling(
        (8, 128, 16, 16),
        {
            "length": (32, 64, 128, 256, 512, 1024),
            "longest": (2, 4, 8, 16, 32, 64, 128),
            "states": (4, 8, 16, 32, 64, 128),
        },
    )
    quick_scaling = Scaling(
        (4, 16, 4, 8), {"length": (8, 16, 32), "longest": (2, 4, 8), "states": (4, 8, 16)}
    )
    claim = "Claimed: O(T (K^2 + L K)), so at most 1 in T, 1 in L and 2 in K."
    operations = SEGMENT_OPERATIONS
    contenders = SEGMENT_CONTENDERS
    reference = REFERENCE
    path_size = SegmentSize(DRAWS, length=4, states=2, longest=3)  # 52 segmentations
    pair_size = SegmentSize(DRAWS, length=2, states=2, longest=2)  # 6 of them, 36 pairs
    gradient_size = SegmentSize(4, length=5, states=3, longest=3)

    def entries(self, size: Size) -> int:
        """Of moves [T, K, K] and of segments [T, L, K]."""
        longest = min(size.longest, size.length) if isinstance(size, SegmentSize) else 1
        return size.length * size.states * (size.states + longest)

    def path_scores(self, inputs: Inputs, paths: Tensor) -> Tensor:
        return reference.path_scores(whole_segment_chains(*inputs.scores), paths.unsqueeze(0))[0]

    def best_scores(self, inputs: Inputs) -> Tensor:
        return reference.viterbi(whole_segment_chains(*inputs.scores)).score

    def outcomes(self, sample: Tensor, size: Size) -> Tensor:
        """The place of each path among segmentations; one place more for what is none."""
        every = self._segmentations(size, sample.device)
        codes, order = _codes(every, size.states).sort()
        found = _codes(_paths(sample), size.states)
        place = torch.searchsorted(codes, found).clamp(max=len(codes) - 1)
        return torch.where(codes[place] == found, order[place], len(codes))

    def probabilities(self, inputs: Inputs) -> Tensor:
        """The last one, of what is no segmentation, is 0."""
        one = inputs.items(0, 1).to(torch.float64)
        (_, length, states), (longest, _) = one.scores[0].shape, one.scores[2].shape
        size = SegmentSize(1, length, states, longest)
        paths = self._segmentations(size, one.emissions.device)
        chain = whole_segment_chains(*one.scores)
        scores = reference.path_scores(chain, paths.unsqueeze(1))[:, 0]
        return pad(scores.softmax(0), (0, 1))

    def _segmentations(self, size: Size, device: torch.device) -> Tensor:
        assert isinstance(size, SegmentSize)
        return reference.enumerate_segmentations(size.length, size.longest, size.states, device)

    def is_hard(self, sample: Tensor) -> bool:
        """Segments that cover each step once; or a label for each step."""
        if not ((sample == 0) | (sample == 1)).all():
            return False
        covered = _covered(sample) if sample.dim() == 4 else sample[..., :-1].sum(-1)
        return bool((covered == 1).all())


def _paths(sample: Tensor) -> Tensor:
    """Paths [B, T] of events [B, T, L, K], or of hard labels and beginnings [B, T, K + 1]."""
    if sample.dim() == 4:
        return read_events(sample)
    labels, begins = sample[..., :-1], sample[..., -1] == 1
    return torch.where(begins, 0, labels.shape[-1]) + labels.argmax(-1)


def _codes(paths: Tensor, num_labels: int) -> Tensor:
    """One integer for each path [..., T]."""
    digits = torch.arange(paths.shape[-1], device=paths.device)
    return (paths * (2 * num_labels) ** digits).sum(-1)


def _covered(events: Tensor) -> Tensor:
    """[B, T + L]: by how many segments each step is covered; 1 beyond T, if by none."""
    by_size = events.sum(-1)  # [B, T, L]
    longest = by_size.shape[-1]
    covered = pad(torch.zeros_like(by_size[..., 0]), (0, longest), value=1.0)
    for size in range(1, longest + 1):
        for step in range(size):
            covered += pad(by_size[..., size - 1], (step, longest - step))
    return covered
