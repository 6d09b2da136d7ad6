"""The semi-Markov chain, as the registry has it: examples, questions, samplers, problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from hypothesis import strategies as st
from torch import Tensor

from structdist import SemiMarkovCRF
from structdist.ops import SemiMarkovChain
from structdist.ops.triton.launching import interpreted
from tests.chains import FORMS, mixed_lengths, transitions_shape
from tests.quantities import common_quantities
from tests.structures.segment_oracle import SegmentOracle, all_segmentations
from tests.structures.structure import (
    BATCH_SHAPES,
    Answerer,
    Ask,
    BaseExample,
    Sampler,
    Structure,
    normal,
    seeded,
)


@dataclass(frozen=True, eq=False)
class SegmentExample(BaseExample):
    """The arguments of a `SemiMarkovCRF`."""

    SCORES = ("segments", "emissions", "transitions", "durations", "start", "end")

    emissions: Tensor
    transitions: Tensor
    durations: Tensor | None = None
    lengths: Tensor | None = None
    segments: Tensor | None = None
    start: Tensor | None = None
    end: Tensor | None = None

    def _arguments(self) -> tuple[tuple, dict]:
        positional = self.emissions, self.transitions, self.durations, self.lengths
        return positional, {"segments": self.segments, "start": self.start, "end": self.end}

    def crf(self, **options) -> SemiMarkovCRF:
        positional, named = self._arguments()
        return SemiMarkovCRF(*positional, **named, **options)

    def oracle(self) -> SegmentOracle:
        positional, named = self._arguments()
        return SegmentOracle(*positional, **named)

    @property
    def longest(self) -> int:
        return (self.durations if self.segments is None else self.segments).shape[-2]

    def with_padding(self, value: float) -> SegmentExample:
        """Also where a segment would begin within the length, and end beyond."""
        num_steps = self.emissions.shape[-2]
        lengths = torch.tensor(num_steps) if self.lengths is None else self.lengths
        steps = torch.arange(num_steps)
        beyond = steps >= lengths[..., None]
        changed = {"emissions": self.emissions.masked_fill(beyond[..., None], value)}
        if self.transitions.dim() == self.emissions.dim() + 1:
            later = beyond[..., 1:, None, None]
            changed["transitions"] = self.transitions.masked_fill(later, value)
        if self.segments is not None:
            ends = steps[:, None] + torch.arange(1, self.longest + 1)
            outside = ends > lengths[..., None, None]
            changed["segments"] = self.segments.masked_fill(outside[..., None], value)
        return replace(self, **changed)

    def at(self, index: tuple[int, ...]) -> SegmentExample:
        """One chain of a batch; start scores are shared by all, end scores are its own."""

        def own(x: Tensor | None, event_dims: int) -> Tensor | None:
            return x if x is None or x.dim() == event_dims else x[index]

        return replace(
            self,
            emissions=self.emissions[index],
            transitions=own(self.transitions, 2),
            durations=own(self.durations, 2),
            lengths=self.lengths[index],
            segments=None if self.segments is None else self.segments[index],
            end=None if self.end is None else self.end[index],
        )


def random_segments(
    name: str,
    batch_shape: tuple = (),
    form: str = "shared",
    num_steps: int = 4,
    longest: int = 2,
    num_labels: int = 2,
    *,
    durations: bool = True,
    segments: bool = True,
    ends: bool = True,
    lengths: str | None = "mixed",
    scale: float = 1.0,
    seed: int = 0,
) -> SegmentExample:
    """Normal scores in float64. Durations are shared, unless every chain has its transitions.

    Where scores do not say where a segment begins, none follows one of its label: a long segment
    and two short ones would be alike in any order, and no path the best.
    """
    generator = seeded(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64) * scale

    lead = batch_shape if form == "per_chain" else ()
    transitions = draw(*transitions_shape(form, batch_shape, num_steps, num_labels))
    if not segments and form != "per_step" and num_labels > 1:
        transitions.diagonal(dim1=-1, dim2=-2).fill_(-torch.inf)
    return SegmentExample(
        name,
        draw(*batch_shape, num_steps, num_labels),
        transitions,
        draw(*lead, longest, num_labels) if durations else None,
        mixed_lengths(batch_shape, num_steps) if lengths == "mixed" else None,
        draw(*batch_shape, num_steps, longest, num_labels) if segments else None,
        draw(num_labels) if ends else None,
        draw(*batch_shape, num_labels) if ends else None,
    )


def forbid_some(example: SegmentExample, seed: int, share: float = 0.3) -> SegmentExample:
    """-inf in a share of all scores, but for segments of length one and labels 0, 1, 0, 1, ..."""
    generator = seeded(seed)
    masks = {n: torch.rand(x.shape, generator=generator) < share for n, x in example.scores.items()}
    last = min(1, example.emissions.shape[-1] - 1)
    for label in {0, last}:
        for name in {"emissions", "start", "end"} & masks.keys():
            masks[name][..., label] = False
        for name in {"durations", "segments"} & masks.keys():
            masks[name][..., 0, label] = False
        masks["transitions"][..., label, last - label] = False
    scores = example.scores.items()
    return example.with_scores(*[x.masked_fill(masks[name], -torch.inf) for name, x in scores])


@st.composite
def any_segments(draw, batch_shapes: Sequence[tuple] = BATCH_SHAPES) -> SegmentExample:
    """Any example with segments: batch shape, form, sizes, lengths, forbidden scores."""
    seed = draw(st.integers(0, 10_000))
    example = random_segments(
        "law",
        draw(st.sampled_from(batch_shapes)),
        draw(st.sampled_from(FORMS)),
        num_steps=draw(st.integers(2, 3)),
        longest=draw(st.integers(1, 3)),
        num_labels=draw(st.integers(1, 2)),
        durations=draw(st.booleans()),
        ends=draw(st.booleans()),
        scale=draw(st.sampled_from([0.1, 1.0, 10.0])),
        seed=seed,
    )
    return forbid_some(example, seed) if draw(st.booleans()) else example


# Questions -----------------------------------------------------------------------------------


def paths_of(event_shape: torch.Size) -> Tensor:
    """[P, T]: the segmentations of T steps, whose first n steps are those of n steps."""
    return all_segmentations(*event_shape, event_shape[0])


def node_expectation(d: Answerer) -> Tensor:
    num_steps, _, num_labels = d.event_shape
    return d.expectation(normal(*d.batch_shape, num_steps, num_labels))


def segment_expectation(d: Answerer) -> Tensor:
    return d.expectation(segment_values=normal(*d.batch_shape, *d.event_shape))


def shared_expectation(d: Answerer) -> Tensor:
    num_steps, longest, num_labels = d.event_shape
    return d.expectation(
        normal(num_steps, num_labels),
        normal(num_labels, num_labels, seed=1),
        normal(longest, num_labels, seed=2),
    )


QUANTITIES: dict[str, Ask] = {
    **common_quantities(paths_of),
    "token_marginals": lambda d: d.token_marginals,
    "boundary_marginals": lambda d: d.boundary_marginals,
    "edge_marginals": lambda d: d.edge_marginals,
    "node_expectation": node_expectation,
    "segment_expectation": segment_expectation,
    "shared_expectation": shared_expectation,
}


def relaxed(temperature: float) -> Sampler:
    return lambda crf, shape, generator: (
        crf.rsample_with_paths(shape, temperature=temperature, generator=generator).paths
    )


def codes_of(labels: Tensor, starts: Tensor, num_labels: int) -> Tensor:
    """Paths [..., T], which are zero where there is neither a label nor a start."""
    return torch.where(starts, labels, labels + num_labels)


def from_labels(crf: SemiMarkovCRF, labels: Tensor, starts: Tensor) -> Tensor:
    inside = torch.arange(crf.event_shape[0]) < crf.lengths[..., None]
    return codes_of(labels, starts, crf.event_shape[-1]) * inside


def from_events(crf: SemiMarkovCRF, events: Tensor) -> Tensor:
    return from_labels(crf, *crf.labels_of(events))


SAMPLERS: dict[str, Sampler] = {
    "sample_paths": lambda crf, shape, g: crf.sample_paths(shape, generator=g),
    "sample": lambda crf, shape, g: from_events(crf, crf.sample(shape, generator=g)),
    "sample_labels": lambda crf, shape, g: from_labels(crf, *crf.sample_labels(shape, generator=g)),
    "rsample-0.1": relaxed(0.1),
    "rsample-5": relaxed(5.0),
    "straight": lambda crf, shape, g: from_events(
        crf, crf.rsample(shape, straight_through=True, generator=g)
    ),
}
RELAXED = {
    "rsample": SemiMarkovCRF.rsample,
    "perturb_and_map": SemiMarkovCRF.perturb_and_map,
    "perturb-all": lambda *a, **options: SemiMarkovCRF.perturb_and_map(
        *a, perturb="all", **options
    ),
    "perturb-nodes": lambda *a, **options: SemiMarkovCRF.perturb_and_map(
        *a, perturb="nodes", **options
    ),
}

# Examples ------------------------------------------------------------------------------------


def broadcast_example() -> SegmentExample:
    """Every argument with another batch shape; together (2, 3)."""
    plain = random_segments("broadcast", (2, 3), "per_chain", seed=70)
    return replace(
        plain,
        emissions=plain.emissions[:, :1],
        transitions=plain.transitions[:1],
        durations=plain.durations[1],
        lengths=torch.tensor([4, 0, 2]),
        segments=plain.segments[0, 0],
        end=plain.end[0, 0],
    )


POISONED = forbid_some(random_segments("forbidden-nan", (2, 3), "per_step", seed=20), seed=21)
EXAMPLES = [
    random_segments("no-batch", (), seed=1),
    random_segments("durations", (5,), segments=False, longest=3, seed=2),
    random_segments("durations-per-chain", (2, 3), "per_chain", segments=False, seed=3),
    random_segments("segments", (5,), "per_step", durations=False, ends=False, seed=4),
    random_segments("longer-than-the-chain", (3,), "per_chain", 2, 4, seed=5),
    random_segments("one-label", (5,), num_labels=1, seed=6),
    random_segments("length-one", (5,), longest=1, num_labels=3, segments=False, seed=7),
    random_segments("one-step", (5,), num_steps=1, seed=8),
    random_segments("sharp", (5,), scale=30.0, seed=9),
    broadcast_example(),
    replace(random_segments("all-empty", (2, 3), seed=10), lengths=torch.zeros(2, 3).long()),
    forbid_some(random_segments("forbidden", (5,), longest=3, segments=False, seed=11), seed=11),
    POISONED.with_padding(torch.nan),
]


def named(*names: str) -> list[SegmentExample]:
    return [example for example in EXAMPLES if example.name in names]


# Problems for kernels ------------------------------------------------------------------------

SIZES = {  # T, L, K
    "plain": [(1, 2, 2), (5, 2, 3)],
    "forbidden": [(4, 1, 3), (5, 2, 3), (12, 9, 2)],
    "wide": [(4, 1, 3), (9, 4, 2), (12, 9, 2)],
}


SIZES_TO_INTERPRET = {  # Triton's interpreter is slow: two blocks of lengths, then of labels
    "plain": [(1, 2, 2), (2, 2, 17)],
    "forbidden": [(5, 5, 2)],
    "wide": [(5, 5, 2)],
}


def make_problem(form: str, kind: str, num_steps: int, longest: int, num_labels: int):
    """Mixed lengths with 0, 1 and T among them; NaN in the padding.

    In the form `mixed` all moves share their scores, and no segments do.
    """
    by_step = form in ("per_step", "mixed")
    example = random_segments(
        kind,
        (5,),
        "shared" if form == "mixed" else form,
        num_steps,
        longest,
        num_labels,
        durations=not by_step,
        segments=by_step,
        ends=False,
        scale=1000.0 if kind == "wide" else 1.0,  # most products underflow
        seed=30,
    )
    example = forbid_some(example, seed=31) if kind == "forbidden" else example
    example = example.with_padding(torch.nan)
    segments = example.segments if by_step else example.durations
    return SemiMarkovChain(example.emissions, example.transitions, segments, example.lengths)


class SemiMarkovChains(Structure):
    """`SemiMarkovCRF`, on all its backends."""

    name = "semi-Markov chain"
    problem = SemiMarkovChain
    forms = FORMS
    examples = EXAMPLES
    few = named("durations-per-chain", "forbidden-nan", "broadcast")
    awkward = named("all-empty", "forbidden", "forbidden-nan")
    small = [
        random_segments("durations", (2,), "per_chain", num_steps=3, segments=False, seed=12),
        forbid_some(
            random_segments("forbidden", (2,), "per_step", 3, seed=13), seed=14
        ).with_padding(torch.nan),
    ]
    drawn = named("no-batch", "durations-per-chain", "forbidden", "forbidden-nan")
    forbidding = named("forbidden", "forbidden-nan")
    twins = replace(
        random_segments("twins", (), num_steps=2, segments=False, lengths=None, seed=15),
        emissions=normal(2, 2, seed=15).expand(2, -1, -1),
    )
    quantities, samplers, relaxations = QUANTITIES, SAMPLERS, RELAXED
    parts = ("steps", "moves", "segments", "first steps")

    def random(
        self,
        name: str,
        batch_shape: tuple = (),
        form: str | None = None,
        *,
        num_steps: int = 4,
        lengths: str | None = "mixed",
        seed: int = 0,
    ) -> SegmentExample:
        form = FORMS[0] if form is None else form
        options = {"num_steps": num_steps, "lengths": lengths, "seed": seed}
        return random_segments(name, batch_shape, form, **options)

    def forbid_some(self, example: SegmentExample, seed: int) -> SegmentExample:
        return forbid_some(example, seed)

    def any_example(self, batch_shapes: Sequence[tuple] = BATCH_SHAPES) -> st.SearchStrategy:
        return any_segments(batch_shapes)

    def all_paths(self, event_shape: torch.Size) -> Tensor:
        return paths_of(event_shape)

    def raw_events(self, paths: Tensor, event_shape: torch.Size, lengths: Tensor) -> Tensor:
        """One path at a time; beyond the length segments begin as they would on a longer chain."""
        num_labels = event_shape[-1]
        events = torch.zeros(*paths.shape[:-1], *event_shape, dtype=torch.bool)
        flat, ends = events.view(-1, *event_shape), lengths.expand(paths.shape[:-1]).flatten()
        rows = paths.reshape(len(ends), -1).tolist()
        for row, (path, end) in enumerate(zip(rows, ends.tolist(), strict=True)):
            begins = [t for t, code in enumerate(path) if code < num_labels]
            for t, after in zip(begins, [*begins[1:], len(path)], strict=True):
                size = (min(after, end) if t < end else after) - t
                flat[row, t, size - 1, path[t]] = True
        return events

    def noise_shape(self, problem: SemiMarkovChain) -> torch.Size:
        num_steps, num_labels = problem.emissions.shape[1:]
        return torch.Size([num_steps, num_labels + problem.longest])

    @cached_property
    def problems(self) -> dict[str, SemiMarkovChain]:
        all_sizes = SIZES_TO_INTERPRET if interpreted() else SIZES
        found = {
            f"{form}-{kind}-{size}": make_problem(form, kind, *size)
            for form in FORMS
            for kind, sizes in all_sizes.items()
            for size in sizes
        }
        return found | {"mixed-forbidden-(5, 5, 2)": make_problem("mixed", "forbidden", 5, 5, 2)}

    @property
    def few_problems(self) -> dict[str, SemiMarkovChain]:
        kinds = {"plain": (5, 2, 3), "forbidden": (5, 2, 3)}
        if interpreted():
            kinds = {"plain": (2, 2, 17), "forbidden": (5, 5, 2)}
        wanted = {f"{form}-{kind}-{size}" for form in FORMS for kind, size in kinds.items()}
        wanted |= {"shared-wide-(9, 4, 2)", "per_step-plain-(1, 2, 2)"}
        wanted |= {"per_chain-forbidden-(4, 1, 3)"}
        return {name: problem for name, problem in self.problems.items() if name in wanted}

    def kernel_values(self, problem: SemiMarkovChain) -> list[tuple[Tensor, Tensor, Tensor]]:
        """On moves and segments in the form of their scores, then in every form."""
        num_chains, num_steps, num_labels = problem.emissions.shape
        nodes = normal(*problem.emissions.shape, seed=1)
        own = (problem.transitions.shape[:-2], problem.segments.shape[:-2])
        per_step = ((num_chains, num_steps - 1), (num_chains, num_steps))
        return [
            (
                nodes,
                normal(*moves, num_labels, num_labels, seed=2),
                normal(*segments, problem.longest, num_labels, seed=3),
            )
            for moves, segments in (own, ((), ()), ((num_chains,), (num_chains,)), per_step)
        ]
