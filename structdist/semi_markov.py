"""`SemiMarkovCRF`: a distribution over segmentations that obeys `torch.distributions`.

This file holds what is the semi-Markov chain's own: its arguments, its events and its draws. What
it shares with other structures is in `base.py`, and the dynamic programs are in
`structdist.ops.semi_markov`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints

from structdist import ops, perturb_map
from structdist.base import Self, StructuredDistribution
from structdist.checks import (
    require_integers,
    require_range,
    require_sample_shape,
    require_tensor,
)
from structdist.events import is_event
from structdist.ops.semi_markov.paths import read_paths
from structdist.ops.semi_markov.problem import FIRST_STEPS
from structdist.relaxation import given_or_drawn, require_temperature, straight_through
from structdist.segment_events import (
    RelaxedLabels,
    RelaxedTilings,
    SegmentLabels,
    Tilings,
    enumerate_tilings,
    events_of,
    from_labels,
    paths_of,
    require_labels,
    require_paths,
    require_tilings,
)
from structdist.segment_potentials import (
    SegmentPotentials,
    flatten_values,
    make_segment_potentials,
)
from structdist.segment_relaxation import (
    hard_choices,
    relaxed_events,
    relaxed_labels,
    straight_through_events,
)


class SemiMarkovCRF(StructuredDistribution):
    """A semi-Markov conditional random field over segmentations of `T` steps.

    Segments have a label, of `K`, and a length in `1..L`, and tile their chain. The score of a
    segment adds up the emissions of its label over its steps, `durations` and `segments`.

    Args:
        emissions: `[*B, T, K]`, the score of each label at each step.
        transitions: `[K, K]`, `[*B, K, K]` or, varying with time, `[*B, T-1, K, K]`; entry
            `[..., i, j]` scores a segment of label `j` next to one of label `i`.
        durations: `[L, K]` or `[*B, L, K]`, the score of each length of a segment of each label.
        lengths: `[*B]`, integers in `0..T` (default `T`). What stands beyond never matters.
        segments: `[*B, T, L, K]`, the score of each segment by first step, length and label.
            `durations` or `segments` may be None, not both.
        start, end: `[K]` or `[*B, K]`, scores of the label of the first and the last segment.

    `-inf` forbids. Events are binary, `[T, L, K]`: a one where a segment begins. Their integer form
    is a path `[T]`: k where a segment of label k begins, K + k where it goes on; or labels and
    starts, each `[T]`. With L = 1 all of this is `LinearChainCRF`.

    Time is O(T (K^2 + L K)) and memory O(T K) beside the arguments, in both passes; only what has
    the shape of events itself (`marginals`, `sample`, `rsample`, `restrict`) takes O(T L K). Those
    who want labels take `token_marginals`, `sample_labels` and `rsample_labels`.
    """

    arg_constraints = {
        name: constraints.dependent(is_discrete=False, event_dim=dims)
        for name, dims in (
            ("emissions", 2),
            ("transitions", 2),
            ("durations", 2),
            ("segments", 3),
            ("start", 1),
            ("end", 1),
        )
    }

    has_enumerate_support = True

    _parameters: SegmentPotentials
    _what_forbids = "emissions, transitions, durations, segments, start and end"
    _event_part = 2

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor,
        durations: Tensor | None,
        lengths: Tensor | None = None,
        *,
        segments: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        potentials = make_segment_potentials(
            emissions, transitions, durations, lengths, segments, start, end
        )
        super().__init__(potentials, validate_args)

    def __repr__(self) -> str:
        batch_shape, (num_steps, longest, num_labels) = tuple(self.batch_shape), self.event_shape
        sizes = f"T={num_steps}, L={longest}, K={num_labels}"
        return f"{type(self).__name__}(batch_shape={batch_shape}, {sizes})"

    # Parameters, broadcast to the batch shape (transitions, durations: as far as they differ) --

    @property
    def emissions(self) -> Tensor:
        """`[*B, T, K]`."""
        return self._parameters.chain.emissions

    @property
    def transitions(self) -> Tensor:
        """`[K, K]`, `[*B, K, K]` or `[*B, T-1, K, K]`, with dimensions of size 1 kept."""
        return self._parameters.chain.transitions

    @property
    def durations(self) -> Tensor | None:
        """`[L, K]` or `[*B, L, K]`, with dimensions of size 1 kept."""
        return self._parameters.durations

    @property
    def segments(self) -> Tensor | None:
        """`[*B, T, L, K]`."""
        return self._parameters.segments

    @property
    def start(self) -> Tensor | None:
        """`[*B, K]`."""
        return self._parameters.chain.start

    @property
    def end(self) -> Tensor | None:
        """`[*B, K]`."""
        return self._parameters.chain.end

    # Events, paths, labels and starts ----------------------------------------------------------

    @constraints.dependent_property(is_discrete=True, event_dim=3)
    def support(self) -> Tilings:
        """Segments that cover each step within the lengths once."""
        return Tilings(self.lengths, self.event_shape)

    @property
    def relaxed_support(self) -> RelaxedTilings:
        """Where relaxed draws lie."""
        return RelaxedTilings(self.lengths, self.event_shape)

    def labels_of(self, value: Tensor) -> SegmentLabels:
        """Labels and starts, each `[*S, *B, T]`, of events or of paths; zeros in the padding."""
        return self._labels(self._read(value))

    def _labels(self, paths: Tensor) -> SegmentLabels:
        _, longest, num_labels = self.event_shape
        found = read_paths(paths, self.lengths, longest, num_labels)
        return SegmentLabels(found.label, found.begins)

    def event_of(self, labels: Tensor, starts: Tensor | None = None) -> Tensor:
        """`[*S, *B, T, L, K]`: events from labels and starts, or from paths alone."""
        if starts is None:
            if self._validating:
                require_paths("paths", labels, self.lengths, *self.event_shape[1:])
            return self._events(labels)
        return self._events(self._read_labels(labels, starts))

    def _events(self, paths: Tensor) -> Tensor:
        _, longest, num_labels = self.event_shape
        return events_of(paths, self.lengths, longest, num_labels, self._parameters.dtype)

    def _read(self, value: Any) -> Tensor:
        if isinstance(value, tuple):
            if len(value) != 2:
                raise ValueError(f"value must be a pair of labels and starts, got {len(value)}")
            return self._read_labels(*value)
        if not is_event(value, self.event_shape, self.batch_shape):
            if self._validating:
                self._broadcast_batch("value", value.shape[:-1])
                require_paths("value", value, self.lengths, *self.event_shape[1:])
            return value.long()
        if self._validating:
            self._broadcast_batch("value", value.shape[:-3])
            require_tilings(value, self.lengths)
        return paths_of(value, self.lengths)

    def _read_labels(self, labels: Tensor, starts: Tensor) -> Tensor:
        """Paths from labels and starts, checked as far as validation asks."""
        _, longest, num_labels = self.event_shape
        if self._validating:
            for name, x in (("labels", labels), ("starts", starts)):
                require_tensor(name, x)
                self._broadcast(name, x, self.event_shape[:1])
            require_labels(labels, starts, num_labels, self._parameters.active)
        paths = from_labels(labels, starts, self.lengths, num_labels)
        if self._validating:
            require_paths("labels and starts", paths, self.lengths, longest, num_labels)
        return paths

    def log_prob(self, value: Tensor | tuple[Tensor, Tensor], *, strict: bool = False) -> Tensor:
        """`[*S, *B]`, of events `[*S, *B, T, L, K]`, of paths, or of a pair of labels and starts.

        Paths, labels and starts are `[*S, *B, T]`; what stands beyond the length does not matter.
        No gradient flows to the value. What is forbidden has log probability -inf or, if `strict`,
        is an error that names the first such segment.
        """
        return super().log_prob(value, strict=strict)  # type: ignore[arg-type]

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """`[P, *B, T, L, K]`: every segmentation of one length (`*B` of ones unless `expand`)."""
        lengths = self.lengths.unique().tolist()
        if len(lengths) > 1:
            raise NotImplementedError("chains of unequal lengths have unequal supports")
        length = lengths[0] if lengths else self.event_shape[0]
        events = enumerate_tilings(length, self.event_shape, self.emissions)
        ones = (1,) * len(self.batch_shape)
        events = events.view(-1, *ones, *self.event_shape)
        return events.expand(-1, *self.batch_shape, *self.event_shape) if expand else events

    def condition(
        self: Self,
        observed: Tensor | None = None,
        *,
        labels: Tensor | None = None,
        starts: Tensor | None = None,
    ) -> Self:
        """Given some labels, some boundaries, or both; each `[*B, T]`, -1 where unknown.

        `labels` are integers in `0..K-1`. `starts` are 1 where a segment begins and 0 where none
        does, or bool. `observed` is a partial path, which says both: k where a segment of label k
        begins, K + k where it goes on. The log probability of all this is `log_evidence`, with the
        same arguments. Labels alone take no memory; what is known of boundaries makes scores of
        segments, O(T L K) whenever something is asked.
        """
        known: Any = self if observed is None else super().condition(observed)
        if labels is not None:
            known = known._given_labels(labels)
        return known if starts is None else known._given_starts(starts)

    def log_evidence(
        self,
        observed: Tensor | None = None,
        *,
        labels: Tensor | None = None,
        starts: Tensor | None = None,
    ) -> Tensor:
        """`[*B]`: the log probability of some labels and boundaries, as `condition` takes them.

        It adds up all segmentations that have them: 0 if nothing is known, and -inf if there is
        none.
        """
        return self._log_evidence(self.condition(observed, labels=labels, starts=starts))

    def _given_labels(self, labels: Tensor) -> SemiMarkovCRF:
        require_integers("labels", labels)
        labels = self._broadcast("labels", labels, self.event_shape[:1])
        larger = self if labels.shape[:-1] == self.batch_shape else self.expand(labels.shape[:-1])
        num_labels, p = self.event_shape[2], larger._parameters
        if self._validating:
            require_range("labels", labels, -1, num_labels - 1, p.active, " (-1 = unknown)")
        by_label = torch.arange(num_labels, device=labels.device)
        allowed = (labels.unsqueeze(-1) == by_label) | (labels == -1).unsqueeze(-1)
        return larger._like(p.restrict_labels(allowed))

    def _given_starts(self, starts: Tensor) -> SemiMarkovCRF:
        require_tensor("starts", starts)
        if starts.is_floating_point() or starts.is_complex():
            raise ValueError(f"starts must be integers or bool, got {starts.dtype}")
        starts = self._broadcast("starts", starts.long(), self.event_shape[:1])
        larger = self if starts.shape[:-1] == self.batch_shape else self.expand(starts.shape[:-1])
        p = larger._parameters
        if self._validating:
            require_range("starts", starts, -1, 1, p.active, " (-1 = unknown)")
        return larger._like(p.restrict(p.starts_allow(starts)))

    # Marginals and expectations ----------------------------------------------------------------

    @property
    def token_marginals(self) -> Tensor:
        """`[*B, T, K]`: the probability of each label at each step."""
        return self._marginals(0)

    @property
    def boundary_marginals(self) -> Tensor:
        """`[*B, T]`: the probability that a segment begins at each step."""
        return self._marginals(FIRST_STEPS).sum(-1).clamp(max=1)

    @property
    def edge_marginals(self) -> Tensor:
        """`[*B, T-1, K, K]`: of label i up to step t, and of a segment of label j after it.

        O(T K^2) memory.
        """
        return self._marginals(1)

    def expectation(
        self,
        node_values: Tensor | None = None,
        edge_values: Tensor | None = None,
        segment_values: Tensor | None = None,
    ) -> Tensor:
        """`[*B]`: E of the sum of values over steps, neighbours and segments.

        `node_values` broadcast to `[*B, T, K]`; `edge_values` are `[K, K]`, `[*B, K, K]` or
        `[*B, T-1, K, K]`, from i to j; `segment_values` are `[L, K]`, `[*B, L, K]` or
        `[*B, T, L, K]`; all finite. Differentiable in all of them.
        """
        given = node_values, edge_values, segment_values
        return self._expectation(flatten_values(self._parameters, *given, self._validating))

    # Draws -------------------------------------------------------------------------------------

    @property
    def noise_shape(self) -> torch.Size:
        """`[T, K + L]`: for a segment that ends with a step, of its labels and of its lengths."""
        num_steps, longest, num_labels = self.event_shape
        return torch.Size([num_steps, num_labels + longest])

    @property
    def _choice_sizes(self) -> tuple[int, ...]:
        _, longest, num_labels = self.event_shape
        return num_labels, longest

    def _hard_choices(self, paths: Tensor) -> Tensor:
        return hard_choices(paths, self.lengths, *self.event_shape[1:]).to(self._parameters.dtype)

    def sample_labels(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator | None = None
    ) -> SegmentLabels:
        """Labels and starts, each `[*S, *B, T]`, of exact, independent draws; no events built."""
        return self._labels(self.sample_paths(sample_shape, generator=generator))

    def rsample_labels(
        self,
        sample_shape: Sequence[int] = (),
        *,
        temperature: float | Tensor = 1.0,
        straight_through: bool = False,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> RelaxedLabels:
        """Relaxed labels `[*S, *B, T, K]` and boundaries `[*S, *B, T]` of the draw of `rsample`.

        A segment is chosen where the one after it begins: its label by a relaxed choice, then its
        length by another, given the hard label. Every step of a hard segment has the relaxed label
        of that segment, whose largest entry is the hard label. Its relaxed boundary is the relaxed
        probability that this segment begins there. Both tend to the hard draw as the temperature
        falls; with `straight_through` they are the hard draw, with the relaxed gradient.
        """
        draw, shape = self._gumbel_ffbs(sample_shape, temperature, generator, noise)
        labels, boundaries = relaxed_labels(draw, self.lengths.reshape(-1), self.event_shape[1])
        num_steps, _, num_labels = self.event_shape
        labels = labels.view(*shape, num_steps, num_labels)
        boundaries = boundaries.view(*shape, num_steps)
        if straight_through:
            return self._hard_labels(draw.path.view(*shape, num_steps), labels, boundaries)
        return RelaxedLabels(labels, boundaries)

    def _hard_labels(self, paths: Tensor, labels: Tensor, boundaries: Tensor) -> RelaxedLabels:
        hard = self._labels(paths)
        one_hot = torch.nn.functional.one_hot(hard.labels, self.event_shape[2])
        one_hot = one_hot.to(labels.dtype) * self._parameters.active.unsqueeze(-1)
        starts = hard.starts.to(boundaries.dtype)
        return RelaxedLabels(
            straight_through(one_hot, labels), straight_through(starts, boundaries)
        )

    def _events_of(self, draw: ops.Draw, hard: Tensor | None) -> Tensor:
        longest = self.event_shape[1]
        if hard is None:
            return relaxed_events(draw, longest)
        return straight_through_events(hard, draw, longest)

    def perturb_and_map(
        self,
        sample_shape: Sequence[int] = (),
        *,
        temperature: float | Tensor = 1.0,
        straight_through: bool = False,
        perturb: str = "segments",
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """`[*S, *B, T, L, K]`: Perturb-and-MAP, a biased baseline with relaxed Viterbi.

        Gumbel noise is added to the score of every segment (`perturb="segments"`, memory
        O(S B T L K)), of every segment and every move (`"all"`, O(S B T (L + K) K)), or of every
        label at every step (`"nodes"`, O(S B T K)). In the latter a segment has the sum over its
        steps, so that how a run of one label is divided is left to the scores. Noise can be given:
        `noise` is `[*S, *B, T, L, K]` for segments and `[*S, *B, T, K]` for nodes; for all
        `[*S, *B, T L + (T-1) K, K]`, a row for each step and length of segments, then a row for
        each step and label that is left.
        """
        sample_shape = require_sample_shape(sample_shape)
        shape = sample_shape + self.batch_shape
        copies = sample_shape.numel(), self.batch_shape.numel()
        temperature = require_temperature(temperature, shape, copies, self._validating)
        noise_shape = perturb_map.segment_noise_shape(perturb, self.event_shape)
        noise = given_or_drawn(noise, shape + noise_shape, self._parameters, generator)
        chain = self._parameters.flatten()
        if self._validating:
            self._forward(chain)  # raises where there is no path to find
        noise = noise.reshape(*copies, *noise_shape)
        draw = perturb_map.perturb_segments(chain, noise, temperature, perturb)
        return self._present(draw, shape, straight_through)
