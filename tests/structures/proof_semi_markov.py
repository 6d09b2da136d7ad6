"""A proof that the core holds another structure: a small semi-Markov chain, on a reference alone.

A path tiles a chain with segments of a label k and a length l in 1..L. In integers it has at step t
the code 1 + (l-1) K + k where such a segment starts, and 0 inside of a segment. Its score adds up
`segments[t, l-1, k]` of all segments, and `transitions[i, j]` between neighbours. Events are
binary, [T, L, K]: 1 where a segment starts. Everything is as plain as it can be, and nothing is
fast. The distribution over this problem is in `proof_segment_crf.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops import Best, Draw, KBest
from structdist.ops.registry import register
from structdist.semirings import (
    Element,
    EntropySemiring,
    ExpectationSemiring,
    LogSemiring,
    MaxSemiring,
    Semiring,
    softmax,
    times,
)


class SegmentProblem(NamedTuple):
    """N chains, as kernels see them."""

    segments: Tensor  # [N, T, L, K]
    transitions: Tensor  # [K, K]
    lengths: Tensor  # [N]

    @property
    def scores(self) -> tuple[Tensor, Tensor]:
        return self.segments, self.transitions

    def with_scores(self, scores: Sequence[Tensor]) -> SegmentProblem:
        return SegmentProblem(*scores, self.lengths)

    def with_values(
        self, values: Sequence[Tensor | None]
    ) -> tuple[SegmentProblem, tuple[Tensor, Tensor]]:
        pairs = zip(self.scores, values, strict=True)
        return self, tuple(torch.zeros_like(x) if v is None else v for x, v in pairs)

    @classmethod
    def example(cls, device: torch.device, dtype: torch.dtype) -> SegmentProblem:
        scores = torch.zeros(1, 2, 2, 2, device=device, dtype=dtype)
        return cls(scores, scores[0, 0], torch.zeros(1, device=device, dtype=torch.long))

    def without_padding(self) -> SegmentProblem:
        """Zeros in place of the scores of segments that reach beyond the length."""
        inside = within(self.lengths, *self.segments.shape[1:3])[..., None]
        return self._replace(segments=torch.where(inside, self.segments, 0.0))


def within(lengths: Tensor, num_steps: int, longest: int) -> Tensor:
    """[*B, T, L]: does a segment from step t of length l end within the length?"""
    ends = torch.arange(num_steps)[:, None] + torch.arange(1, longest + 1)
    return ends <= lengths[..., None, None]


def covered(num_steps: int, longest: int) -> Tensor:
    """[T, L, T + L]: is a step covered by the segment from t of length l?"""
    start, step = torch.arange(num_steps)[:, None, None], torch.arange(num_steps + longest)
    return (step >= start) & (step < start + torch.arange(1, longest + 1)[:, None])


def ending_at(x: Tensor, end: int) -> Tensor:
    """[..., l, K]: the entries of [..., T, L, K] for segments of all lengths that end at `end`."""
    lengths = range(1, min(x.shape[-2], end) + 1)
    return torch.stack([x[..., end - length, length - 1, :] for length in lengths], -2)


class Scan(NamedTuple):
    """Boundary by boundary (0..T): each [N, K]."""

    starts: list[Element]  # all that can stand before a segment of a label
    ends: list[Element]  # all that ends with a segment of a label
    total: Element  # [N]: all paths


def scan(semiring: Semiring, segments: Element, transitions: Element, lengths: Tensor) -> Scan:
    """Pool all paths from left to right: over lengths, then over labels."""
    unit = tuple(torch.zeros_like(x[:, 0, 0]) for x in segments)
    starts, ends = [unit], [unit]
    for end in range(1, segments[0].shape[1] + 1):
        before = [starts[end - 1 - n] for n in range(min(segments[0].shape[2], end))]
        stacked = tuple(torch.stack(x, 1) for x in zip(*before, strict=True))
        pieces = times(stacked, tuple(ending_at(x, end) for x in segments))
        ends.append(semiring.add(pieces, dim=1))
        moved = times(tuple(x.unsqueeze(-1) for x in ends[-1]), transitions)
        starts.append(semiring.add(moved, dim=-2))
    boundaries = tuple(torch.stack(x, 1) for x in zip(*ends, strict=True))  # [N, T+1, K]
    last = tuple(x[torch.arange(len(lengths)), lengths] for x in boundaries)
    total = tuple(torch.where(lengths > 0, x, 0.0) for x in semiring.add(last, dim=-1))
    return Scan(starts, ends, total)


class SegmentReference:
    """The functions of `structdist.ops.backend.Reference`."""

    def log_partition(self, problem: SegmentProblem) -> Tensor:
        segments, transitions, lengths = problem.without_padding()
        return scan(LogSemiring(), (segments,), (transitions,), lengths).total[0]

    def entropy(self, problem: SegmentProblem) -> Tensor:
        segments, transitions, lengths = problem.without_padding()
        pairs = [(x, torch.zeros_like(x)) for x in (segments, transitions)]
        return scan(EntropySemiring(), *pairs, lengths).total[1]

    def expectation(self, problem: SegmentProblem, values: Sequence[Tensor | None]) -> Tensor:
        _, values = problem.with_values(values)
        *scores, lengths = problem.without_padding()
        *values, _ = problem.with_scores(values).without_padding()
        pairs = zip(scores, values, strict=True)
        return scan(ExpectationSemiring(), *pairs, lengths).total[1]

    def marginals(self, problem: SegmentProblem, part: int) -> Tensor:
        """Of segments [N, T, L, K] (part 0), or of moves between them [N, T-1, K, K] (1)."""
        segments, transitions, lengths = problem.without_padding()
        num_steps, longest = segments.shape[1:3]
        starts, ends, _ = scan(LogSemiring(), (segments,), (transitions,), lengths)
        nothing, moves = torch.zeros_like(ends[0][0]), []
        found = [[nothing] * longest for _ in range(num_steps + 1)]
        for end in reversed(range(1, num_steps + 1)):
            after = torch.stack(found[end]).sum(0)[:, None]  # [N, 1, K]: what starts here
            moves.append(softmax(ends[end][0].unsqueeze(-1) + transitions, -2) * after)
            is_last = (lengths == end)[:, None]
            mass = moves[-1].sum(-1) + torch.where(is_last, softmax(ends[end][0], -1), 0.0)
            ending = ending_at(segments, end)
            before = torch.stack([starts[end - 1 - n][0] for n in range(ending.shape[1])], 1)
            shares = softmax(before + ending, 1) * mass[:, None]
            for n, share in enumerate(shares.unbind(1)):
                found[end - 1 - n][n] = share
        if part == 1:
            return torch.stack(moves[::-1], 1)[:, :-1]
        return torch.stack([torch.stack(row, 1) for row in found[:-1]], 1)

    def path_scores(self, problem: SegmentProblem, paths: Tensor) -> Tensor:
        segments, transitions, lengths = problem.without_padding()
        chains, (num_steps, longest, num_labels) = torch.arange(len(lengths)), segments.shape[1:]
        score, possible = segments.new_zeros(paths.shape[:2]), torch.ones_like(paths[..., 0]) > 0
        expected, label = torch.zeros_like(paths[..., 0]), torch.zeros_like(paths[..., 0])
        for t in range(num_steps):
            code, active = paths[..., t], t < lengths
            starts = active & (expected == t)
            in_range = (code > 0) & (code <= longest * num_labels)
            possible = possible & (~active | torch.where(starts, in_range, code == 0))
            length, here = unpacked(code.clamp(1, longest * num_labels), num_labels)
            step = segments[chains, t, length - 1, here]
            step = step + torch.where(torch.tensor(t > 0), transitions[label, here], 0.0)
            score = score + torch.where(starts & possible, step, 0.0)
            expected = torch.where(starts, t + length, expected)
            label = torch.where(starts, here, label)
        return torch.where(possible & (expected == lengths), score, -torch.inf)

    def sample_paths(self, problem: SegmentProblem, uniform: Tensor) -> Tensor:
        def choose(end: int, logits: Tensor) -> Tensor:
            cumulative = softmax(logits, -1).cumsum(-1)
            below = cumulative <= uniform[..., end - 1, None] * cumulative[..., -1:]
            last_possible = (cumulative < cumulative[..., -1:]).sum(-1)
            return torch.minimum(below.sum(-1), last_possible)

        return _backtrack(problem, LogSemiring(), choose, len(uniform))

    def gumbel_ffbs(self, problem: SegmentProblem, gumbel: Tensor, temperature) -> Draw:
        return _relaxed(problem, LogSemiring(), gumbel, temperature)

    def relaxed_viterbi(self, problem: SegmentProblem, temperature) -> Draw:
        return _relaxed(
            problem, MaxSemiring(), torch.zeros_like(problem.segments)[None], temperature
        )

    def viterbi(self, problem: SegmentProblem) -> Best:
        segments, transitions, lengths = problem.without_padding()
        score = scan(MaxSemiring(), (segments,), (transitions,), lengths).total[0]
        path = _backtrack(problem, MaxSemiring(), lambda _, logits: logits.argmax(-1), 1)[0]
        return Best(path, score)

    def k_best(self, problem: SegmentProblem, k: int) -> KBest:
        """Of all paths there are: those that end elsewhere are out, and missing ones are zeros."""
        num_steps, longest, num_labels = problem.segments.shape[1:]
        paths, ends = every_path(num_steps, longest, num_labels)
        paths = torch.cat([paths, paths.new_zeros(k, num_steps)])
        ends = torch.cat([ends, ends.new_full((k,), -1)])[:, None]
        scores = self.path_scores(problem, paths[:, None].expand(-1, len(problem.lengths), -1))
        scores, found = torch.where(ends == problem.lengths, scores, -torch.inf).topk(k, dim=0)
        return KBest(paths[found] * (scores > -torch.inf)[..., None], scores)


def every_path(num_steps: int, longest: int, num_labels: int) -> tuple[Tensor, Tensor]:
    """[P, T]: the paths of all lengths, and [P]: where they end."""
    paths: list[list[tuple]] = [[()]]  # by length
    for end in range(1, num_steps + 1):
        lengths, labels = range(1, min(longest, end) + 1), range(num_labels)
        last = [(1 + (n - 1) * num_labels + k, *[0] * (n - 1)) for n in lengths for k in labels]
        paths.append([path + code for code in last for path in paths[end - len(code)]])
    rows = [(*path, *[0] * (num_steps - len(path))) for some in paths for path in some]
    ends = [len(path) for some in paths for path in some]
    return torch.tensor(rows), torch.tensor(ends)


def unpacked(code: Tensor, num_labels: int) -> tuple[Tensor, Tensor]:
    """The length and the label that a positive code stands for."""
    return (code - 1) // num_labels + 1, (code - 1) % num_labels


def _backtrack(
    problem: SegmentProblem,
    semiring: Semiring,
    choose: Callable[[int, Tensor], Tensor],
    num_samples: int,
) -> Tensor:
    """[S, N, T]: segments from last to first, chosen among flat logits [S, N, l K] at each end."""
    segments, transitions, lengths = problem.without_padding()
    num_steps, _, num_labels = segments.shape[1:]
    starts = scan(semiring, (segments,), (transitions,), lengths).starts
    place = lengths.expand(num_samples, -1)  # where the segment to be chosen ends
    path, label = place.new_zeros(*place.shape, num_steps), torch.zeros_like(place)
    for end in reversed(range(1, num_steps + 1)):
        ending = ending_at(segments, end)
        before = torch.stack([starts[end - 1 - n][0] for n in range(ending.shape[1])], 1)
        moves = torch.where((end < lengths)[:, None], transitions.T[label], 0.0)  # [S, N, K]
        code = choose(end, (before + ending + moves.unsqueeze(-2)).flatten(-2)) + 1
        length, chosen = unpacked(code, num_labels)
        here, begin = place == end, end - length
        at_begin = here[..., None] & (torch.arange(num_steps) == begin[..., None])
        path = torch.where(at_begin, code[..., None], path)
        place, label = torch.where(here, begin, place), torch.where(here, chosen, label)
    return path


def _relaxed(problem: SegmentProblem, semiring: Semiring, noise: Tensor, temperature) -> Draw:
    """Noise [S, N, T, L, K] belongs to segments, so each is used at the one place where it ends.

    The softmax over all segments that end where the hard path has a boundary is the relaxation of
    that choice; where it has none, nothing was chosen, and the relaxation is 0.
    """
    soft: list[Tensor] = []
    if isinstance(temperature, Tensor):
        temperature = temperature.unsqueeze(-1)

    def choose(end: int, logits: Tensor) -> Tensor:
        logits = logits + ending_at(noise, end).flatten(-2)
        possible = logits > -torch.inf  # -inf would leave the temperature a NaN gradient
        divided = torch.where(possible, logits, 0.0) / temperature
        soft.append(softmax(torch.where(possible, divided, -torch.inf), -1))
        return logits.argmax(-1)

    path = _backtrack(problem, semiring, choose, len(noise))
    longest, num_labels = problem.segments.shape[2:]
    is_boundary = torch.nn.functional.pad(path > 0, (0, 1))  # of the next segment, or the end
    is_boundary = is_boundary.scatter(-1, problem.lengths.expand(path.shape[:2])[..., None], True)
    rows = [[torch.zeros_like(soft[-1][..., :num_labels])] * longest for _ in soft]
    for end, chosen in zip(reversed(range(1, len(soft) + 1)), soft, strict=True):
        for n, share in enumerate(chosen.unflatten(-1, (-1, num_labels)).unbind(-2)):
            rows[end - 1 - n][n] = torch.where(is_boundary[..., end, None], share, 0.0)
    return Draw(torch.stack([torch.stack(row, -2) for row in rows], -3), path)


register(SegmentProblem, "semi-Markov proof", SegmentReference())
