"""The semi-Markov proof, as the registry has it: examples, questions, samplers, kernel problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st
from torch import Tensor

from tests.chains import mixed_lengths
from tests.quantities import common_quantities
from tests.structures.proof_segment_crf import SegmentCRF
from tests.structures.proof_semi_markov import SegmentProblem, within
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
    """The arguments of a `SegmentCRF`."""

    SCORES = ("segments", "transitions")

    segments: Tensor
    transitions: Tensor
    lengths: Tensor | None = None

    def crf(self, **options) -> SegmentCRF:
        return SegmentCRF(self.segments, self.transitions, self.lengths, **options)

    def oracle(self) -> SegmentOracle:
        return SegmentOracle(self.segments, self.transitions, self.lengths)

    def with_padding(self, value: float) -> SegmentExample:
        """Also where a segment would begin within the length, and end beyond."""
        num_steps, longest = self.segments.shape[-3:-1]
        lengths = torch.tensor(num_steps) if self.lengths is None else self.lengths
        beyond = ~within(lengths, num_steps, longest)[..., None]
        return replace(self, segments=self.segments.masked_fill(beyond, value))

    def at(self, index: tuple[int, ...]) -> SegmentExample:
        return replace(self, segments=self.segments[index], lengths=self.lengths[index])


def random_segments(
    name: str,
    batch_shape: tuple = (),
    num_steps: int = 4,
    longest: int = 2,
    num_labels: int = 2,
    *,
    lengths: str | None = "mixed",
    scale: float = 1.0,
    seed: int = 0,
) -> SegmentExample:
    """Normal scores in float64."""
    return SegmentExample(
        name,
        normal(*batch_shape, num_steps, longest, num_labels, seed=seed) * scale,
        normal(num_labels, num_labels, seed=seed + 1) * scale,
        mixed_lengths(batch_shape, num_steps) if lengths == "mixed" else None,
    )


def forbid_some(example: SegmentExample, seed: int, share: float = 0.35) -> SegmentExample:
    """-inf in a share of all scores, but for segments of length one and label 0."""
    generator = seeded(seed)
    masks = [torch.rand(x.shape, generator=generator) < share for x in example.scores.values()]
    masks[0][..., 0, 0] = masks[1][0, 0] = False
    pairs = zip(example.scores.values(), masks, strict=True)
    return example.with_scores(*[x.masked_fill(mask, -torch.inf) for x, mask in pairs])


@st.composite
def any_segments(draw, batch_shapes: Sequence[tuple] = BATCH_SHAPES) -> SegmentExample:
    """Any example: batch shape, sizes, lengths, forbidden scores."""
    seed = draw(st.integers(0, 10_000))
    example = random_segments(
        "law",
        draw(st.sampled_from(batch_shapes)),
        num_steps=draw(st.integers(2, 3)),
        longest=draw(st.integers(1, 3)),
        num_labels=draw(st.integers(1, 2)),
        scale=draw(st.sampled_from([0.1, 1.0, 10.0])),
        seed=seed,
    )
    return forbid_some(example, seed) if draw(st.booleans()) else example


def paths_of(event_shape: torch.Size) -> Tensor:
    """[P, T]: the segmentations of all lengths up to T."""
    return torch.cat([all_segmentations(*event_shape, n) for n in range(event_shape[0] + 1)])


def segment_expectation(d: Answerer) -> Tensor:
    return d.expectation(normal(*d.batch_shape, *d.event_shape))


def shared_expectation(d: Answerer) -> Tensor:
    num_labels = d.event_shape[-1]
    return d.expectation(normal(*d.event_shape), normal(num_labels, num_labels, seed=1))


QUANTITIES: dict[str, Ask] = {
    **common_quantities(paths_of),
    "move_marginals": lambda d: d.move_marginals,
    "segment_expectation": segment_expectation,
    "shared_expectation": shared_expectation,
}


def relaxed(temperature: float) -> Sampler:
    return lambda crf, shape, generator: (
        crf.rsample_with_paths(shape, temperature=temperature, generator=generator).paths
    )


SAMPLERS: dict[str, Sampler] = {
    "sample_paths": lambda crf, shape, g: crf.sample_paths(shape, generator=g),
    "sample": lambda crf, shape, g: codes_of(crf.sample(shape, generator=g)),
    "rsample-0.1": relaxed(0.1),
    "rsample-5": relaxed(5.0),
    "straight": lambda crf, shape, g: codes_of(
        crf.rsample(shape, straight_through=True, generator=g)
    ),
}


def codes_of(events: Tensor) -> Tensor:
    """Paths [..., T] from events [..., T, L, K]."""
    flat = events.flatten(-2)
    return torch.where(flat.any(-1), flat.argmax(-1) + 1, 0)


POISONED = forbid_some(random_segments("forbidden-nan", (2, 3), seed=20), seed=21)
EXAMPLES = [
    random_segments("no-batch", (), seed=1),
    random_segments("batch", (5,), seed=2),
    random_segments("grid", (2, 3), longest=3, seed=3),
    random_segments("longer-than-the-chain", (3,), num_steps=2, longest=4, seed=4),
    random_segments("one-label", (5,), num_labels=1, seed=5),
    random_segments("length-one", (5,), longest=1, num_labels=3, seed=6),
    random_segments("one-step", (5,), num_steps=1, seed=7),
    random_segments("sharp", (5,), scale=30.0, seed=8),
    replace(random_segments("all-empty", (2, 3), seed=9), lengths=torch.zeros(2, 3).long()),
    forbid_some(random_segments("forbidden", (5,), longest=3, seed=10), seed=11),
    POISONED.with_padding(torch.nan),
]


def named(*names: str) -> list[SegmentExample]:
    return [example for example in EXAMPLES if example.name in names]


def _problem(kind: str, num_steps: int, longest: int, num_labels: int) -> SegmentProblem:
    example = random_segments(kind, (5,), num_steps, longest, num_labels, seed=30)
    example = forbid_some(example, seed=31) if kind == "forbidden" else example
    example = example.with_padding(torch.nan)
    return SegmentProblem(example.segments, example.transitions, example.lengths)


class Segmentations(Structure):
    """`SegmentCRF`, which has a reference and no other backend."""

    name = "semi-Markov proof"
    problem = SegmentProblem
    forms = ("shared",)
    examples = EXAMPLES
    few = named("grid", "forbidden-nan")
    awkward = named("all-empty", "forbidden", "forbidden-nan")
    small = [
        random_segments("plain", (3,), num_steps=3, seed=12),
        forbid_some(random_segments("forbidden", (2,), 3, seed=13), seed=14).with_padding(
            torch.nan
        ),
    ]
    drawn = [*named("no-batch", "grid", "forbidden", "forbidden-nan")]
    forbidding = named("forbidden", "forbidden-nan")
    twins = replace(
        random_segments("twins", (), num_steps=2, lengths=None, seed=15),
        segments=normal(2, 2, 2, seed=15).expand(2, -1, -1, -1),
    )
    quantities, samplers = QUANTITIES, SAMPLERS
    relaxations = {"rsample": SegmentCRF.rsample}
    problems = {
        f"{kind}-{size}": _problem(kind, *size)
        for kind in ("plain", "forbidden")
        for size in ((1, 2, 2), (4, 2, 3), (5, 3, 2))
    }
    few_problems = problems
    parts = ("segments", "moves")

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
        return random_segments(name, batch_shape, num_steps, lengths=lengths, seed=seed)

    def forbid_some(self, example: SegmentExample, seed: int) -> SegmentExample:
        return forbid_some(example, seed)

    def any_example(self, batch_shapes: Sequence[tuple] = BATCH_SHAPES) -> st.SearchStrategy:
        return any_segments(batch_shapes)

    def all_paths(self, event_shape: torch.Size) -> Tensor:
        return paths_of(event_shape)

    def raw_events(self, paths: Tensor, event_shape: torch.Size) -> Tensor:
        codes = torch.arange(1, event_shape[1:].numel() + 1)
        return (paths[..., None] == codes).unflatten(-1, event_shape[1:])

    def kernel_values(self, problem: SegmentProblem) -> list[tuple[Tensor, Tensor]]:
        segments, transitions = problem.scores
        return [(normal(*segments.shape, seed=1), normal(*transitions.shape, seed=2))]
