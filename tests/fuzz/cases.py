"""The arguments of distributions, from a seed and a number: the same ones every time.

A case has a structure, sizes that can be enumerated, a batch shape, a form of its transitions,
dtypes, lengths (0 and 1 among them) with anything in the padding, and scores: of a magnitude up to
1e38, often with masks, and in memory that need not be contiguous.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tests.chains import FORMS, Example, transitions_shape
from tests.fuzz.exact import Exact
from tests.fuzz.listings import Sizes
from tests.fuzz.parts import arguments_of, errors_of, parts_of
from tests.structures.semi_markov import SegmentExample
from tests.structures.structure import BaseExample

BATCH_SHAPES = [(), (1,), (3,), (2, 3), (30,), (64,), (65,), (7, 19), (130,), (130,)]
LINEAR_SIZES = [(1, 1), (1, 3), (1, 17), (2, 1), (2, 3), (2, 8), (2, 9), (2, 17), (2, 33)]
LINEAR_SIZES += [(3, 2), (3, 5), (3, 9), (4, 3), (4, 6), (5, 2), (5, 4), (6, 3), (7, 3), (10, 2)]
LINEAR_SIZES += [(41, 1), (83, 1)]
SEGMENT_SIZES = [(1, 1), (1, 3), (1, 17), (2, 3), (2, 9), (2, 17), (3, 2), (3, 5), (3, 9)]
SEGMENT_SIZES += [(4, 3), (4, 5), (5, 2), (5, 3), (6, 2), (9, 1)]
DTYPES = [torch.float32] * 4 + [torch.float64] * 4 + [torch.bfloat16, torch.float16]
MAGNITUDES = [0.0, 1e-3, 1.0, 1.0, 1.0, 10.0, 100.0, 1e4, 1e6, 1e9, 1e20, 1e37, 1e38]
FINITE_MASKS = [-1e4, -1e9, -1e30, -1e38, "least"]
MASKS = [[-torch.inf], [-torch.inf], [-1e4], [-1e9], ["least"], [-torch.inf, *FINITE_MASKS]]
MASKS += [[1e4, 1e9, -1e9], [*FINITE_MASKS, 1e9, 1e30, 1e37, "largest"]]
PADDINGS = [torch.nan, torch.inf, -torch.inf, 0.0, 6e4]


@dataclass(frozen=True)
class Case:
    """One batch of chains, and what is true of it."""

    name: str
    example: BaseExample  # its scores are leaves; some of them want gradients
    exact: Exact
    validate: bool
    says_lengths: bool  # or leaves them out, all being T?
    impossible: bool  # has a chain no path, so that using it is an error?

    def dist(self) -> Any:
        """The distribution, over the same leaves each time."""
        lengths = self.example.lengths if self.says_lengths else None
        return replace(self.example, lengths=lengths).crf(validate_args=self.validate)

    def in_order(self) -> Case:
        """The same, with scores that lie in memory one after the other."""
        fresh = [
            x.detach().clone(memory_format=torch.contiguous_format).requires_grad_(x.requires_grad)
            for x in self.example.scores.values()
        ]
        return replace(self, example=self.example.with_scores(*fresh))


def make_case(seed: int, number: int) -> Case:
    """The case of this number among those of a seed."""
    choose = random.Random(f"{seed}/{number}")
    generator = torch.Generator().manual_seed(choose.getrandbits(40))
    example, sizes = _random_example(choose, generator)
    exact = exact_of(example, sizes)
    validate, keep = choose.random() < 0.7, choose.random() < 0.1
    impossible = bool(exact.impossible.any())
    if impossible and not (validate and keep):
        example = _without_impossible(example, exact)
        exact, impossible = exact_of(example, sizes), False
    example = _with_layouts(example, choose)
    dtypes = sorted({str(x.dtype).removeprefix("torch.") for x in example.scores.values()})
    kind = "semi-Markov" if sizes.longest else "linear"
    batch = example.lengths.shape
    name = f"{kind} chains {tuple(batch)} of (T, K, L) = {tuple(sizes)}, {'+'.join(dtypes)}"
    whole = _is_whole(example.emissions, batch) and bool((example.lengths == sizes[0]).all())
    says_lengths = not whole or choose.random() < 0.3
    return Case(name, example, exact, validate, says_lengths, impossible)


def exact_of(example: BaseExample, sizes: Sizes) -> Exact:
    arguments = arguments_of(example, sizes)
    errors = errors_of(arguments, sizes, example)
    return Exact(sizes, parts_of(arguments, sizes), errors, example.lengths.flatten())


def _random_example(choose: random.Random, generator: torch.Generator) -> tuple[BaseExample, Sizes]:
    batch_shape, form = choose.choice(BATCH_SHAPES), choose.choice(FORMS)
    linear = choose.random() < 0.5
    steps, labels = choose.choice(LINEAR_SIZES if linear else SEGMENT_SIZES)
    longest = 0 if linear else choose.choice([1, 2, 3, steps, steps + 2, 9])
    shapes = {
        "emissions": (*_lead_of_emissions(choose, batch_shape, steps), steps, labels),
        "transitions": transitions_shape(form, batch_shape, steps, labels),
        "start": (*_lead(choose, batch_shape), labels) if choose.random() < 0.5 else None,
        "end": (*_lead(choose, batch_shape), labels) if choose.random() < 0.5 else None,
    }
    if not linear:
        which = choose.choice(["durations", "segments", "both"])
        shapes["durations"] = (*_lead(choose, batch_shape), longest, labels)
        shapes["segments"] = (*_lead(choose, batch_shape), steps, longest, labels)
        if which != "both":
            del shapes["segments" if which == "durations" else "durations"]
    dtype, mixed = choose.choice(DTYPES), choose.random() < 0.1
    common = _style(choose)
    scores = {}
    for name, shape in shapes.items():
        if shape is not None:
            style = common if choose.random() < 0.5 else _style(choose)
            own_dtype = choose.choice(DTYPES) if mixed else dtype
            scores[name] = _random_scores(shape, style, own_dtype, generator)
    lengths = _random_lengths(batch_shape, steps, choose, generator)
    if linear:
        example: BaseExample = Example("fuzz", lengths=lengths, **scores)
    else:
        example = SegmentExample("fuzz", lengths=lengths, **scores)
    if choose.random() < 0.5 and _is_whole(example.emissions, lengths.shape):
        example = _with_padding(example, choose.choice(PADDINGS))
    return example, Sizes(steps, labels, longest)


def _lead(choose: random.Random, batch_shape: tuple) -> tuple:
    """The batch shape, sometimes with dimensions of one or none."""
    if choose.random() < 0.75:
        return batch_shape
    return () if choose.random() < 0.5 else tuple(1 for _ in batch_shape)


def _lead_of_emissions(choose: random.Random, batch_shape: tuple, steps: int) -> tuple:
    """The same; but lengths that have more dimensions, or T chains, would be taken for a mask."""
    lead = _lead(choose, batch_shape)
    return batch_shape if batch_shape[-1:] == (steps,) or len(lead) == 0 else lead


def _random_lengths(
    batch_shape: tuple, steps: int, choose: random.Random, generator: torch.Generator
) -> Tensor:
    if choose.random() < 0.4:
        return torch.full(batch_shape, steps)
    return torch.randint(steps + 1, batch_shape, generator=generator)


@dataclass(frozen=True)
class Style:
    """How scores are made: their magnitude, whether they tie, and which masks stand how often."""

    magnitude: float
    whole: bool
    masks: list
    share: float


def _style(choose: random.Random) -> Style:
    share = choose.choice([0.0, 0.0, 0.1, 0.3, 0.7, 0.95])
    return Style(choose.choice(MAGNITUDES), choose.random() < 0.15, choose.choice(MASKS), share)


def _random_scores(
    shape: tuple, style: Style, dtype: torch.dtype, generator: torch.Generator
) -> Tensor:
    limits = torch.finfo(dtype)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    x = (x.round() if style.whole else x) * style.magnitude
    named = {"least": limits.min, "largest": limits.max}
    masks = torch.tensor([named.get(mask, mask) for mask in style.masks], dtype=torch.float64)
    chosen = masks[torch.randint(len(masks), shape, generator=generator)]
    x = torch.where(torch.rand(shape, generator=generator) < style.share, chosen, x)
    finite = x.clamp(limits.min, limits.max).to(dtype)
    return torch.where(x == -torch.inf, -torch.inf, finite)


def _with_padding(example: BaseExample, value: float) -> BaseExample:
    """Where each chain has entries of its own; what chains share is within the longest."""
    padded = example.with_padding(value).scores
    same = {name: x for name, x in padded.items() if x.shape == example.scores[name].shape}
    return replace(example, **same)


def _is_whole(x: Tensor, batch_shape: torch.Size) -> bool:
    return x.shape[: len(batch_shape)] == batch_shape and x.dim() >= len(batch_shape) + 2


def _without_impossible(example: BaseExample, exact: Exact) -> BaseExample:
    """Chains without a path become chains without a step."""
    impossible = exact.impossible.view(example.lengths.shape)
    return replace(example, lengths=torch.where(impossible, 0, example.lengths))


def _with_layouts(example: BaseExample, choose: random.Random) -> BaseExample:
    """The same numbers in other places of memory, as leaves of which some want gradients."""
    laid_out = [_laid_out(x, choose).detach() for x in example.scores.values()]
    return example.with_scores(*[x.requires_grad_(choose.random() < 0.8) for x in laid_out])


def _laid_out(x: Tensor, choose: random.Random) -> Tensor:
    kind = choose.choice(["plain", "plain", "transposed", "every other", "expanded", "offset"])
    if kind == "transposed":
        return x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.dim() > 1 else x
    if kind == "every other":
        return torch.stack([x, torch.full_like(x, torch.nan)], -1).flatten(-2)[..., ::2]
    if kind == "expanded" and x.dim() > 2 and len(x) > 0 and bool((x == x[:1]).all()):
        return x[:1].expand_as(x)
    if kind == "offset":
        return torch.cat([x.new_full((3,), torch.nan), x.flatten()])[3:].view(x.shape)
    return x
