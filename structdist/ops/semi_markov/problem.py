"""The semi-Markov chain as kernels see it: a flat batch of chains, as plain tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import in_chain
from structdist.ops.edges import EdgeForm, same_form
from structdist.ops.finite import bounded_scores

FIRST_STEPS = 3  # the kind of part that has no scores


class SemiMarkovChain(NamedTuple):
    """N chains, each tiled by segments of a label and a length in 1..L.

    Start and end scores are part of the emissions: the first segment covers the first step, and the
    last one the last. What stands at or beyond a chain's length is padding, and so is the score of
    a segment that would reach beyond it: kernels never let it matter.
    """

    emissions: Tensor  # [N, T, K]: of each step of a segment
    transitions: Tensor  # [K, K], [N, K, K] or [N, T-1, K, K]: from a segment to the next
    segments: Tensor  # [L, K], [N, L, K] or, by first step, [N, T, L, K]: of whole segments
    lengths: Tensor  # [N], integers in 0..T

    @property
    def scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """What a path's score adds up from: its steps, its moves and its segments."""
        return self.emissions, self.transitions, self.segments

    def with_scores(self, scores: Sequence[Tensor]) -> SemiMarkovChain:
        """The same chains with other scores, in the order of `scores`."""
        emissions, transitions, segments = scores
        return SemiMarkovChain(emissions, transitions, segments, self.lengths)

    def with_values(
        self, values: Sequence[Tensor | None]
    ) -> tuple[SemiMarkovChain, tuple[Tensor, Tensor, Tensor]]:
        """These chains and values on their parts (None is 0), every pair in one form."""
        given = [
            torch.zeros_like(score) if value is None else value
            for score, value in zip(self.scores, values, strict=True)
        ]
        transitions, on_moves = same_form(self.transitions, given[1])
        segments, on_segments = same_form(self.segments, given[2])
        wide = SemiMarkovChain(self.emissions, transitions, segments, self.lengths)
        return wide, (given[0], on_moves, on_segments)

    def weighing(
        self, part: int, weights: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Values whose expectation is the sum of weights times marginals of a kind of part.

        The fourth kind, the first steps of segments by label, has no scores of its own: its values
        [N, T, K] are those of all segments from there, whatever their length.
        """
        if part == FIRST_STEPS:
            shape = (*weights.shape[:2], self.longest, weights.shape[2])
            return None, None, weights.unsqueeze(2).expand(shape)
        steps, moves, segments = (weights if part == n else None for n in range(3))
        return steps, moves, segments

    def shape_of_part(self, part: int) -> Sequence[int]:
        """Of the marginals of steps, moves, segments or first steps; see the reference."""
        num_chains, num_steps, num_labels = self.emissions.shape
        by_step = num_chains, num_steps, num_labels
        moves = num_chains, num_steps - 1, num_labels, num_labels
        segments = num_chains, num_steps, self.longest, num_labels
        return (by_step, moves, segments, by_step)[part]

    @property
    def shape_of_choices(self) -> Sequence[int]:
        """[N, T, K + L]: a label and a length for what ends with each step."""
        num_chains, num_steps, num_labels = self.emissions.shape
        return num_chains, num_steps, num_labels + self.longest

    @property
    def longest(self) -> int:
        """L, the length of the longest segment that has a score."""
        return self.segments.shape[-2]

    @classmethod
    def example(cls, device: torch.device, dtype: torch.dtype) -> SemiMarkovChain:
        """A small problem, to ask backends whether they could serve its like."""
        scores = torch.zeros(1, 2, 2, device=device, dtype=dtype)
        lengths = torch.zeros(1, device=device, dtype=torch.long)
        return cls(scores, scores[0], scores[0], lengths)


def ends_within(lengths: Tensor, num_steps: int, longest: int) -> Tensor:
    """Bool [..., T, L]: does a segment from step t, of a length 1..L, end within its chain?"""
    first = torch.arange(num_steps, device=lengths.device).unsqueeze(-1)
    end = first + torch.arange(1, longest + 1, device=lengths.device)
    return end <= lengths[..., None, None]


def without_padding(chain: SemiMarkovChain) -> SemiMarkovChain:
    """Zeros in place of whatever stands beyond the lengths, so that not even NaN gets through."""
    emissions, transitions, segments, lengths = chain
    num_steps = emissions.shape[1]
    active = in_chain(lengths, num_steps)
    emissions = torch.where(active[..., None], emissions, 0.0)
    if EdgeForm.of(transitions) is EdgeForm.PER_STEP:
        transitions = torch.where(active[:, 1:, None, None], transitions, 0.0)
    if EdgeForm.of(segments) is EdgeForm.PER_STEP:
        inside = ends_within(lengths, num_steps, chain.longest)
        segments = torch.where(inside[..., None], segments, 0.0)
    return chain.with_scores([bounded_scores(x) for x in (emissions, transitions, segments)])


def ending_at(segments: Tensor, end: int) -> Tensor:
    """[1 or N, l, K]: scores of the segments that end before step `end`, the longest first.

    There are l = min(L, end) of them, one for each step they may start at, in the order of time.
    """
    count = min(segments.shape[-2], end)
    if EdgeForm.of(segments) is not EdgeForm.PER_STEP:
        here = segments[..., :count, :].flip(-2)
        return here.unsqueeze(0) if here.dim() == 2 else here
    first = torch.arange(end - count, end, device=segments.device)
    return segments[:, first, end - 1 - first]
