"""The distribution of the semi-Markov proof: what the base leaves to a structure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.nn.functional import one_hot

from structdist import StructuredDistribution
from structdist.checks import require_real
from structdist.lengths import integer_lengths
from tests.structures.proof_semi_markov import SegmentProblem, covered, within


@dataclass(frozen=True)
class SegmentParameters:
    """The parameters of `SegmentCRF`, over one batch shape."""

    segments: Tensor  # [*B, T, L, K]
    transitions: Tensor  # [K, K]
    lengths: Tensor  # [*B]

    @property
    def batch_shape(self) -> torch.Size:
        return self.lengths.shape

    @property
    def event_shape(self) -> torch.Size:
        return self.segments.shape[-3:]

    @property
    def dtype(self) -> torch.dtype:
        return self.segments.dtype

    @property
    def device(self) -> torch.device:
        return self.segments.device

    @property
    def is_meta(self) -> bool:
        return self.segments.is_meta

    @property
    def inside(self) -> Tensor:
        """[*B, T, L]"""
        return within(self.lengths, *self.event_shape[:2])

    def expand(self, batch_shape: torch.Size) -> SegmentParameters:
        segments = self.segments.expand(batch_shape + self.event_shape)
        return replace(self, segments=segments, lengths=self.lengths.expand(batch_shape))

    def restrict(self, allowed: Tensor) -> SegmentParameters:
        allowed = allowed | ~self.inside[..., None]
        return replace(self, segments=torch.where(allowed, self.segments, -torch.inf))

    def allowed_by(self, observed: Tensor, validate: bool) -> Tensor:
        """Codes are observed, 0 being 'inside of a segment' and -1 unknown."""
        num_steps, longest, num_labels = self.event_shape
        codes = torch.arange(1, longest * num_labels + 1).view(longest, num_labels)
        allowed = (observed[..., None, None] == codes) | (observed == -1)[..., None, None]
        later = covered(num_steps, longest)[..., :num_steps].clone()
        later[torch.arange(num_steps), :, torch.arange(num_steps)] = False  # [T, L, T]
        starts = (observed > 0) & (torch.arange(num_steps) < self.lengths[..., None])
        crossing = torch.einsum("tlu,...u->...tl", later.int(), starts.int()) > 0
        return allowed & ~crossing[..., None]

    def flatten(self) -> SegmentProblem:
        segments = self.segments.reshape(-1, *self.event_shape)
        return SegmentProblem(segments, self.transitions, self.lengths.reshape(-1))

    def versions(self) -> tuple[int, ...]:
        scores = self.segments, self.transitions
        return tuple(x._version for x in scores if not x.is_inference())

    def require_allowed_values(self) -> None:
        lowest, highest = self.lengths.aminmax() if self.lengths.numel() else (0, 0)
        if lowest < 0 or highest > self.event_shape[0]:
            raise ValueError(f"lengths must lie in 0..{self.event_shape[0]}")
        if not ((self.segments < torch.inf) | ~self.inside[..., None]).all():
            raise ValueError("segments must be finite or -inf")
        if not (self.transitions < torch.inf).all():
            raise ValueError("transitions must be finite or -inf")

    def first_forbidden(self, index: tuple[int, ...], path: Tensor) -> str:
        return f"{path[: int(self.lengths[index])].tolist()} is no allowed segmentation"


class Tilings(constraints.Constraint):
    """Events [..., T, L, K]: segments that cover each step of their chain once, and no other."""

    is_discrete = True
    event_dim = 3

    def __init__(self, lengths: Tensor, event_shape: torch.Size) -> None:
        self.lengths, self.event_shape = lengths, event_shape

    def check(self, value: Tensor) -> Tensor:
        cover = covered(*self.event_shape[:2]).to(value.dtype)
        count = torch.einsum("...tlk,tlu->...u", value, cover)
        steps = torch.arange(count.shape[-1]) < self.lengths[..., None]
        return (count == steps).all(-1) & ((value == 0) | (value == 1)).flatten(-3).all(-1)


class RelaxedSegments(Tilings):
    """Shares of segments [..., T, L, K], in 0..1, that end within their chain."""

    is_discrete = False

    def check(self, value: Tensor) -> Tensor:
        inside = within(self.lengths, *self.event_shape[:2])[..., None]
        return ((value >= 0) & (value <= 1) & (inside | (value == 0))).flatten(-3).all(-1)


class SegmentCRF(StructuredDistribution):
    """Segments `[*B, T, L, K]`, transitions `[K, K]`, lengths `[*B]` (default T)."""

    arg_constraints = {
        "segments": constraints.dependent(is_discrete=False, event_dim=3),
        "transitions": constraints.dependent(is_discrete=False, event_dim=2),
    }
    has_enumerate_support = False
    _what_forbids = "segments and transitions"

    def __init__(
        self,
        segments: Tensor,
        transitions: Tensor,
        lengths: Tensor | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        require_real("segments", segments, like=segments)
        require_real("transitions", transitions, like=segments)
        lengths = integer_lengths(lengths, segments[..., 0, :])
        dtype = torch.promote_types(segments.dtype, transitions.dtype)
        dtype = torch.promote_types(dtype, torch.float32)
        batch_shape = torch.broadcast_shapes(segments.shape[:-3], lengths.shape)
        parameters = SegmentParameters(segments.to(dtype), transitions.to(dtype), lengths)
        super().__init__(parameters.expand(batch_shape), validate_args)

    @property
    def segments(self) -> Tensor:
        return self._parameters.segments

    @property
    def transitions(self) -> Tensor:
        return self._parameters.transitions

    @constraints.dependent_property(is_discrete=True, event_dim=3)
    def support(self) -> Tilings:
        return Tilings(self.lengths, self.event_shape)

    @property
    def relaxed_support(self) -> RelaxedSegments:
        return RelaxedSegments(self.lengths, self.event_shape)

    def _events(self, paths: Tensor) -> Tensor:
        longest, num_labels = self.event_shape[1:]
        active = torch.arange(self.event_shape[0]) < self.lengths[..., None]
        codes = one_hot(paths * active, longest * num_labels + 1)[..., 1:]
        return codes.unflatten(-1, (longest, num_labels)).to(self.segments.dtype)

    def _read(self, value: Tensor) -> Tensor:
        if not value.is_floating_point() and value.dtype != torch.bool:
            return value
        codes = torch.arange(1, self.event_shape[1:].numel() + 1, dtype=torch.long)
        return (value.long().flatten(-2) * codes).sum(-1)

    @property
    def move_marginals(self) -> Tensor:
        """`[*B, T-1, K, K]`: the probability of each change of segment, from label to label."""
        return self._marginals(1)

    def expectation(self, on_segments: Tensor, on_moves: Tensor | None = None) -> Tensor:
        """`[*B]`: of values that broadcast to `[*B, T, L, K]`, and of values `[K, K]`."""
        segments = on_segments.to(self.segments).expand(self.batch_shape + self.event_shape)
        moves = None if on_moves is None else on_moves.to(self.segments)
        return self._expectation((segments.reshape(-1, *self.event_shape), moves))
