"""What a semi-Markov chain is made of: shapes, broadcasting, and what may stand where.

A path tiles its chain with segments of a label k and a length l in 1..L. Its score is

    sum over steps of emissions[t, k of the segment there]
    + sum over segments of durations[l-1, k] + segments[t, l-1, k], t being its first step
    + sum over neighbours of transitions[i, j] + start[first label] + end[last label].

What it shares with the linear chain, all but durations and segments, is held as `Potentials`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from structdist import ops
from structdist.checks import require_not_complex, require_range, require_real
from structdist.ops import SemiMarkovChain
from structdist.ops.edges import every_edge
from structdist.ops.semi_markov.paths import read_paths
from structdist.ops.semi_markov.problem import ends_within
from structdist.potentials import (
    Potentials,
    flatten_edge_values,
    flatten_edges,
    flatten_node_values,
    make_potentials,
)


@dataclass(eq=False)  # never changed, but not frozen: that would cost as much as all its checks
class SegmentPotentials:
    """The parameters of a batch of semi-Markov chains, as they were given."""

    chain: Potentials  # emissions, transitions, start, end, lengths, batch shape and dtype
    given_durations: Tensor | None  # [..., L, K]
    given_segments: Tensor | None  # [..., T, L, K]
    allowed: Tensor | None = (
        None  # bool [..., T, L, K], or [..., T, L, 1]: all others are forbidden
    )

    @property
    def durations(self) -> Tensor | None:
        """[L, K], or [*B, L, K] with dimensions of size 1 kept."""
        given = self.given_durations
        return None if given is None else self._with_batch_dims(given, 2)

    @property
    def segments(self) -> Tensor | None:
        """[*B, T, L, K], -inf where not allowed."""
        given, allowed = self.given_segments, self.allowed
        if given is None and allowed is None:
            return None
        zero = torch.zeros((), dtype=self.dtype, device=self.device)
        scores = zero if given is None else given.to(self.dtype)
        if allowed is not None:
            scores = torch.where(allowed, scores, -torch.inf)
        return scores.expand(self.batch_shape + self.event_shape)

    def _with_batch_dims(self, x: Tensor, event_dims: int) -> Tensor:
        x = x.to(self.dtype)
        missing = len(self.batch_shape) + event_dims - x.dim()
        return x if x.dim() == event_dims or missing == 0 else x[(None,) * missing]

    @property
    def longest(self) -> int:
        """L."""
        given = self.given_durations if self.given_segments is None else self.given_segments
        assert given is not None  # one of the two is
        return given.shape[-2]

    @property
    def batch_shape(self) -> torch.Size:
        return self.chain.batch_shape

    @property
    def event_shape(self) -> torch.Size:
        num_steps, num_labels = self.chain.event_shape
        return torch.Size([num_steps, self.longest, num_labels])

    @property
    def lengths(self) -> Tensor:
        """[*B]."""
        return self.chain.lengths

    @property
    def dtype(self) -> torch.dtype:
        return self.chain.dtype

    @property
    def device(self) -> torch.device:
        return self.chain.device

    @property
    def is_meta(self) -> bool:
        return self.chain.is_meta

    @property
    def active(self) -> Tensor:
        """Which steps belong to their chain: bool [*B, T]."""
        return self.chain.active

    @property
    def inside(self) -> Tensor:
        """Which segments end within their chain: bool [*B, T, L, 1]."""
        return ends_within(self.lengths, *self.event_shape[:2]).unsqueeze(-1)

    def versions(self) -> tuple[int, ...]:
        """Changes with every change in place (inference tensors do not tell)."""
        given = self.given_durations, self.given_segments
        own = [x._version for x in given if x is not None and not x.is_inference()]
        return (*self.chain.versions(), *own)

    def expand(self, batch_shape: torch.Size) -> SegmentPotentials:
        """The same chains over a larger batch; what they share stays shared."""
        return replace(self, chain=self.chain.expand(batch_shape))

    def restrict(self, allowed: Tensor) -> SegmentPotentials:
        """The same with every segment forbidden that a bool mask [*B, T, L, K] forbids."""
        allowed = allowed | ~self.inside
        return replace(self, allowed=allowed if self.allowed is None else self.allowed & allowed)

    def shift(self, values: Tensor) -> SegmentPotentials:
        """The same with values [*B, T, L, K] added to the scores of segments."""
        scores = self.segments
        if scores is None:
            return replace(self, given_segments=values)
        return replace(self, given_segments=ops.sum_of_scores(scores, values))

    def restrict_labels(self, allowed: Tensor) -> SegmentPotentials:
        """The same with every label of a step forbidden that a bool mask [*B, T, K] forbids."""
        return replace(self, chain=self.chain.restrict(allowed))

    def allowed_by(self, observed: Tensor, validate: bool) -> Tensor:
        """Bool [*B, T, L, K]: the segments that partial paths [*B, T] leave, -1 being unknown."""
        num_labels = self.event_shape[-1]
        if validate:
            meaning = " (-1 = unknown, k = a segment of label k begins, K + k = it goes on)"
            require_range("observed", observed, -1, 2 * num_labels - 1, self.active, meaning)
        out_of_range = (observed < -1) | (observed >= 2 * num_labels)
        known = (observed >= 0) & self.active
        label = torch.where(known & ~out_of_range, observed % num_labels, -1)
        starts = torch.where(known, (observed < num_labels).long(), -1)
        return self._labels_allow(label) & self.starts_allow(starts)

    def _labels_allow(self, labels: Tensor) -> Tensor:
        """Bool [*B, T, L, K]: segments all of whose steps may have their label [*B, T]."""
        by_label = torch.arange(self.event_shape[-1], device=labels.device)
        wrong = (labels.unsqueeze(-1) != by_label) & (labels >= 0).unsqueeze(-1)
        wrong = wrong & self.active.unsqueeze(-1)
        return self._none_within(wrong, self.event_shape[1])

    def starts_allow(self, starts: Tensor) -> Tensor:
        """Bool [*B, T, L, 1]: segments that begin, and go on, where `starts` [*B, T] lets them.

        1 is a step where a segment begins, 0 one where none does, and -1 unknown.
        """
        begins = ((starts != 0) | ~self.active)[..., None, None]
        goes_on = self._none_within(((starts == 1) & self.active).unsqueeze(-1), self.longest, 1)
        return begins & goes_on

    def _none_within(self, wrong: Tensor, longest: int, skipped: int = 0) -> Tensor:
        """Bool [*B, T, L, ...]: is nothing wrong [*B, T, ...] from `skipped` steps after t on?"""
        beyond = torch.zeros_like(wrong[..., :1, :]).expand(*wrong.shape[:-2], longest, -1)
        padded = torch.cat([wrong, beyond], -2).long().cumsum(-2)
        padded = torch.nn.functional.pad(padded, (0, 0, 1, 0))  # [*B, 1 + T + L, ...]: before t
        first = torch.arange(wrong.shape[-2], device=wrong.device).unsqueeze(-1)
        end = first + torch.arange(1, longest + 1, device=wrong.device)
        return padded[..., end, :] == padded[..., first + skipped, :]

    def flatten(self) -> SemiMarkovChain:
        """What kernels take: one batch dimension, start and end folded into the emissions."""
        emissions, transitions, lengths = self.chain.flatten()
        lengths = lengths.clamp(0, self.event_shape[0])  # where nobody has looked at them
        return SemiMarkovChain(emissions, transitions, self._flat_segments(), lengths)

    def _flat_segments(self) -> Tensor:
        """Durations and segments together, in a form of `SemiMarkovChain`."""
        durations, given = self.durations, self.given_segments
        if given is None:
            assert durations is not None
            if self.allowed is None:
                return flatten_edges(durations, self.batch_shape, 2)
            by_step = durations.unsqueeze(-3)
        else:
            by_step = self._with_batch_dims(given, 3)
            if durations is not None:
                by_step = ops.sum_of_scores(by_step, durations.unsqueeze(-3))
        if self.allowed is not None:
            by_step = torch.where(self.allowed, by_step, -torch.inf)
        return _flatten_by_step(by_step, self.batch_shape)

    def require_allowed_values(self) -> None:
        """Raise on lengths out of range, and on NaN or +inf inside a chain (not in the padding)."""
        self.chain.require_allowed_values()
        for name in ("durations", "segments"):
            x = getattr(self, f"given_{name}")
            if 0 not in self.batch_shape and x is not None and not ops.all_below_inf(x):
                bad = ~(x < torch.inf)
                if name == "segments":
                    bad = bad & self.inside
                if bad.any():
                    where = bad.nonzero()[0].tolist()
                    value = x.expand(bad.shape)[tuple(where)].item()
                    raise ValueError(f"{name} must be finite or -inf, got {value} at index {where}")

    def first_forbidden(self, index: tuple[int, ...], path: Tensor) -> str:
        """The first segment or move that forbids a path [T] of the chain at a batch index."""
        problem, length = self.flatten(), int(self.lengths[index])
        num_labels = self.event_shape[-1]
        row = int(torch.arange(self.lengths.numel(), device="cpu").view(self.batch_shape)[index])
        label, begins, size, is_path = read_paths(
            path, self.lengths[index], self.longest, num_labels
        )
        if not is_path:
            return f"{path[:length].tolist()} is no segmentation with segments of 1..{self.longest}"
        moves = len(problem.lengths), self.event_shape[0] - 1, -1, -1
        edges = every_edge(problem.transitions).expand(moves)[row]
        by_size = _segment_scores(problem, row)
        for t in begins.nonzero().flatten().tolist():
            k, steps = int(label[t]), int(size[t])
            if t > 0 and edges[t - 1, label[t - 1], k] == -torch.inf:
                return f"the move from {int(label[t - 1])} to {k} into step {t} is forbidden"
            if (problem.emissions[row, t : t + steps, k] == -torch.inf).any():
                return f"label {k} is forbidden in the segment of {steps} from step {t}"
            if by_size[min(t, len(by_size) - 1), steps - 1, k] == -torch.inf:
                return f"the segment of label {k} and length {steps} from step {t} is forbidden"
        return "no path of this chain is allowed"


def _segment_scores(problem: SemiMarkovChain, row: int) -> Tensor:
    """[T or 1, L, K]: of one chain."""
    segments = problem.segments if problem.segments.dim() == 2 else problem.segments[row]
    return segments if segments.dim() == 3 else segments.unsqueeze(0)


def _flatten_by_step(x: Tensor, batch_shape: torch.Size) -> Tensor:
    """[N, T, L, K], in the memory of what all chains share, if they do."""
    event_shape = x.shape[-3:]
    if x.numel() == event_shape.numel():
        return x.reshape(1, *event_shape).expand(batch_shape.numel(), *event_shape)
    return x.expand(batch_shape + event_shape).reshape(batch_shape.numel(), *event_shape)


def flatten_values(
    p: SegmentPotentials,
    node_values: Tensor | None,
    edge_values: Tensor | None,
    segment_values: Tensor | None,
    validate: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Values on the parts of a flat problem, 0 where the scores forbid."""
    nodes = edges = segments = None
    if node_values is not None:
        nodes = flatten_node_values(node_values, p.chain, validate)
    if edge_values is not None:
        edges = flatten_edge_values(edge_values, p.chain, validate)
    if segment_values is not None:
        segments = _flatten_segment_values(segment_values, p, validate)
    return nodes, edges, segments


def _flatten_segment_values(values: Tensor, p: SegmentPotentials, validate: bool) -> Tensor:
    """Values [L, K], [*B, L, K] or [*B, T, L, K], in a form of `SemiMarkovChain`."""
    require_not_complex("segment_values", values)
    by_step = values.dim() == len(p.batch_shape) + 3
    event_shape = p.event_shape if by_step else p.event_shape[1:]
    lead = values.dim() - len(event_shape)
    try:
        values.expand(p.batch_shape + event_shape)
        fits = lead >= 0 and values.shape[lead:] == event_shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            "segment_values must be [L, K], [*B, L, K] or [*B, T, L, K] with "
            f"(T, L, K) = {tuple(p.event_shape)} and batch shape {tuple(p.batch_shape)}, "
            f"got {tuple(values.shape)}"
        )
    values = values.to(p.device, p.dtype)
    if by_step:
        values = values.expand(p.batch_shape + event_shape)
    forbidden = p.segments if by_step else p.durations
    if forbidden is not None and (by_step or p.given_segments is None):
        values = torch.where(forbidden == -torch.inf, 0.0, values)
    finite = values.isfinite()
    if validate and not (finite | ~p.inside if by_step else finite).all():
        raise ValueError("segment_values must be finite within the lengths")
    if by_step:
        return _flatten_by_step(values, p.batch_shape)
    return flatten_edges(values, p.batch_shape, 2)


def make_segment_potentials(
    emissions: Tensor,
    transitions: Tensor,
    durations: Tensor | None,
    lengths: Tensor | None,
    segments: Tensor | None,
    start: Tensor | None,
    end: Tensor | None,
) -> SegmentPotentials:
    """Check kinds and shapes, and find the batch shape and dtype that all have together."""
    own = {
        name: (x, dims)
        for name, x, dims in (("durations", durations, 2), ("segments", segments, 3))
        if x is not None
    }
    if not own:
        raise ValueError("durations [L, K] or segments [*B, T, L, K] must be given: they say L")
    for name, (x, _) in own.items():
        require_real(name, x, like=emissions)
    batch_dims = max(x.dim() - dims for x, dims in own.values())
    chain = make_potentials(emissions, transitions, lengths, start, end, batch_dims=batch_dims)
    dtype, batch_shape = chain.dtype, chain.batch_shape
    for name, (x, dims) in own.items():
        _require_shape(name, x, dims, chain)
        dtype = torch.promote_types(dtype, x.dtype)
        try:
            batch_shape = torch.broadcast_shapes(batch_shape, x.shape[:-dims])
        except RuntimeError:
            raise ValueError(
                f"{name} has batch shape {tuple(x.shape[:-dims])}, which does not broadcast with "
                f"that of the other arguments, {tuple(batch_shape)}"
            ) from None
    sizes = {name: x.shape[-2] for name, (x, _) in own.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"segments must have the lengths 1..L of durations, got L = {sizes}")
    chain = replace(chain, dtype=dtype, batch_shape=batch_shape)
    return SegmentPotentials(chain, durations, segments)


def _require_shape(name: str, x: Tensor, event_dims: int, chain: Potentials) -> None:
    num_steps, num_labels = chain.event_shape
    fits = x.dim() >= event_dims and x.shape[-1] == num_labels and x.shape[-2] >= 1
    if event_dims == 3:
        fits = fits and x.shape[-3] == num_steps
    if not fits:
        wanted = (
            "[L, K] or [*B, L, K]" if event_dims == 2 else f"[*B, T, L, K] with T = {num_steps}"
        )
        raise ValueError(
            f"{name} must be {wanted}, L at least 1 and K = {num_labels}, got {tuple(x.shape)}"
        )
