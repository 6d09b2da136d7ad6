"""The linear chain, as the registry has it: examples, questions, samplers, kernel problems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from hypothesis import strategies as st
from torch import Tensor

from structdist import LinearChainCRF, ops
from structdist.ops import Chain
from structdist.ops.triton.launching import interpreted
from tests.chains import EXAMPLES, FORMS, Example, fill_padding, forbid_some, random_example
from tests.oracle import all_paths
from tests.quantities import common_quantities
from tests.structures.structure import (
    BATCH_SHAPES,
    Answerer,
    Ask,
    Sampler,
    Structure,
    normal,
    seeded,
)

# Questions -----------------------------------------------------------------------------------


def paths_of(event_shape: torch.Size) -> Tensor:
    """[K^T, T]: all paths of T steps, whose first n are those of n steps."""
    num_steps, num_states = event_shape
    return all_paths(num_steps, num_states, num_steps)


def node_expectation(d: Answerer) -> Tensor:
    return d.expectation(normal(*d.batch_shape, *d.event_shape))


def edge_expectation(d: Answerer) -> Tensor:
    num_steps, num_states = d.event_shape
    return d.expectation(edge_values=normal(*d.batch_shape, num_steps - 1, num_states, num_states))


def shared_expectation(d: Answerer) -> Tensor:
    num_steps, num_states = d.event_shape
    nodes, edges = normal(num_steps, num_states), normal(num_states, num_states, seed=1)
    return d.expectation(nodes, edges)


QUANTITIES: dict[str, Ask] = {
    **common_quantities(paths_of),
    "edge_marginals": lambda d: d.edge_marginals,
    "node_expectation": node_expectation,
    "edge_expectation": edge_expectation,
    "shared_expectation": shared_expectation,
}


def relaxed(temperature: float, **options) -> Sampler:
    return lambda crf, shape, generator: crf.rsample(
        shape, temperature=temperature, generator=generator, **options
    ).argmax(-1)


EXACT: dict[str, Sampler] = {
    "sample_paths": lambda crf, shape, g: crf.sample_paths(shape, generator=g),
    "sample": lambda crf, shape, g: crf.sample(shape, generator=g).argmax(-1),
    "rsample-0.1": relaxed(0.1),
    "rsample-1": relaxed(1.0),
    "rsample-5": relaxed(5.0),
    "straight-0.1": relaxed(0.1, straight_through=True),
    "straight-1": relaxed(1.0, straight_through=True),
    "straight-5": relaxed(5.0, straight_through=True),
}
RELAXED = {
    "rsample": LinearChainCRF.rsample,
    "edges": LinearChainCRF.perturb_and_map,
    "nodes": lambda *a, **options: LinearChainCRF.perturb_and_map(*a, perturb="nodes", **options),
}

# Examples ------------------------------------------------------------------------------------

AWKWARD = [e for e in EXAMPLES if "forbidden" in e.name or "nan" in e.name or "empty" in e.name]
FEW = ("(2, 3)-per_chain-ends1", "forbidden-nan-shared", "forbidden-nan-per_step", "broadcast")


def _small(form: str, *, ends: bool = True) -> Example:
    name = f"{form}-ends{ends:d}"
    return random_example(name, (4,), form, num_steps=3, num_states=2, ends=ends, seed=3)


def _small_forbidden(form: str) -> Example:
    plain = random_example(f"{form}-forbidden", (2,), form, num_steps=3, ends=True, seed=4)
    return fill_padding(forbid_some(plain, seed=5), torch.nan)


SMALL = [_small("shared", ends=False), *map(_small, FORMS), *map(_small_forbidden, FORMS)]
DRAWN = [
    random_example("shared", (4,), "shared", seed=1),
    random_example("per_chain-ends", (2, 3), "per_chain", ends=True, seed=2),
    random_example("per_step-ends", (4,), "per_step", ends=True, seed=3),
    forbid_some(random_example("forbidden", (4,), "shared", ends=True, seed=4), seed=4),
    fill_padding(
        forbid_some(random_example("forbidden-nan", (5,), "per_step", ends=True, seed=5), seed=5),
        torch.nan,
    ),
    random_example("no-batch", (), "shared", lengths=None, scale=2.0, seed=6),
]


def twins(num_chains: int) -> Example:
    """Identical chains in one batch."""
    single = random_example("single", (), num_steps=2, num_states=2, lengths=None, seed=11)
    emissions = single.emissions.expand(num_chains, -1, -1)
    return single.with_scores(emissions, single.transitions)


@st.composite
def any_chain(draw, batch_shapes: Sequence[tuple] = BATCH_SHAPES) -> Example:
    """Any example: batch shape, form, size, lengths, start and end, forbidden scores."""
    seed = draw(st.integers(0, 10_000))
    example = random_example(
        "law",
        draw(st.sampled_from(batch_shapes)),
        draw(st.sampled_from(FORMS)),
        num_steps=draw(st.integers(2, 4)),
        num_states=draw(st.integers(1, 3)),
        ends=draw(st.booleans()),
        scale=draw(st.sampled_from([0.1, 1.0, 10.0])),
        seed=seed,
    )
    return forbid_some(example, seed) if draw(st.booleans()) else example


# Problems for kernels ------------------------------------------------------------------------

KINDS = ["plain", "forbidden", "wide"]
SIZES = [(1, 3), (2, 1), (3, 5), (7, 4), (63, 17)]  # T, K
SIZES_TO_INTERPRET = [(1, 3), (2, 1), (4, 17)]  # Triton's interpreter is slow
NUM_CHAINS = 6


def make_chain(form: str, kind: str, num_steps: int, num_states: int) -> Chain:
    """Mixed lengths with 0, 1 and T among them; NaN in the padding."""
    generator = seeded(num_steps * 100 + num_states)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    lead = {"shared": (), "per_chain": (NUM_CHAINS,), "per_step": (NUM_CHAINS, num_steps - 1)}
    emissions = draw(NUM_CHAINS, num_steps, num_states)
    transitions = draw(*lead[form], num_states, num_states)
    if kind == "wide":  # most products underflow, in float32 and in float64
        emissions, transitions = emissions * 1000, transitions * 1000
    if kind == "forbidden":
        forbid = torch.rand(transitions.shape, generator=generator) < 0.5
        keep = torch.eye(num_states, dtype=torch.bool)
        transitions = transitions.masked_fill(forbid & ~keep, -torch.inf)
        emissions[..., 1:] = emissions[..., 1:].masked_fill(
            torch.rand(emissions[..., 1:].shape, generator=generator) < 0.2, -torch.inf
        )
    lengths = torch.randint(0, num_steps + 1, (NUM_CHAINS,), generator=generator)
    lengths[:3] = torch.tensor([0, 1, num_steps])
    active = ops.in_chain(lengths, num_steps)
    emissions[~active] = torch.nan
    if form == "per_step":
        transitions[~active[:, 1:]] = torch.nan
    return Chain(emissions, transitions, lengths)


class LinearChains(Structure):
    """`LinearChainCRF`, on all its backends."""

    name = "linear chain"
    problem = Chain
    forms = FORMS
    examples, awkward, small, drawn = EXAMPLES, AWKWARD, SMALL, DRAWN
    few = [e for e in EXAMPLES if e.name in FEW]
    forbidding = DRAWN[3:5]
    twins = twins(2)
    quantities, samplers, relaxations = QUANTITIES, EXACT, RELAXED
    parts = ("nodes", "edges")

    def random(
        self,
        name: str,
        batch_shape: tuple = (),
        form: str | None = None,
        *,
        num_steps: int = 4,
        lengths: str | None = "mixed",
        seed: int = 0,
    ) -> Example:
        """With start and end scores."""
        form = FORMS[0] if form is None else form
        options = {"num_steps": num_steps, "lengths": lengths, "seed": seed}
        return random_example(name, batch_shape, form, ends=True, **options)

    def forbid_some(self, example: Example, seed: int) -> Example:
        return forbid_some(example, seed)

    def any_example(self, batch_shapes: Sequence[tuple] = BATCH_SHAPES) -> st.SearchStrategy:
        return any_chain(batch_shapes)

    def all_paths(self, event_shape: torch.Size) -> Tensor:
        return paths_of(event_shape)

    def raw_events(self, paths: Tensor, event_shape: torch.Size, lengths: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(paths, event_shape[1]).bool()

    @cached_property
    def problems(self) -> dict[str, Chain]:
        return {
            f"{form}-{kind}-{size}": make_chain(form, kind, *size)
            for form in FORMS
            for kind in KINDS
            for size in (SIZES_TO_INTERPRET if interpreted() else SIZES)
        }

    @property
    def few_problems(self) -> dict[str, Chain]:
        size = (4, 17) if interpreted() else (7, 4)
        wanted = {f"{form}-{kind}-{size}" for form in FORMS for kind in ("plain", "forbidden")}
        wanted |= {"shared-wide-(3, 5)", "per_step-plain-(1, 3)", "per_chain-plain-(2, 1)"}
        return {name: problem for name, problem in self.problems.items() if name in wanted}

    def kernel_values(self, problem: Chain) -> list[tuple[Tensor, Tensor]]:
        """On edges in the form of the transitions, then in every form."""
        num_chains, num_steps, num_states = problem.emissions.shape
        leads = [problem.transitions.shape[:-2], (), (num_chains,), (num_chains, num_steps - 1)]
        nodes = normal(*problem.emissions.shape, seed=1)
        return [(nodes, normal(*lead, num_states, num_states, seed=2)) for lead in leads]
