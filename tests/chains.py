"""Examples of linear chains: random chains with every feature of the contract."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from structdist import LinearChainCRF
from tests.oracle import Oracle
from tests.structures.structure import BATCH_SHAPES, BaseExample, seeded

FORMS = ["shared", "per_chain", "per_step"]


@dataclass(frozen=True, eq=False)
class Example(BaseExample):
    """The arguments of a `LinearChainCRF`."""

    SCORES = ("emissions", "transitions", "start", "end")

    emissions: Tensor
    transitions: Tensor
    lengths: Tensor | None = None
    start: Tensor | None = None
    end: Tensor | None = None

    def crf(self, **options) -> LinearChainCRF:
        return LinearChainCRF(
            self.emissions,
            self.transitions,
            self.lengths,
            start=self.start,
            end=self.end,
            **options,
        )

    def oracle(self) -> Oracle:
        return Oracle(
            self.emissions, self.transitions, self.lengths, start=self.start, end=self.end
        )

    def with_padding(self, value: float) -> Example:
        return self if self.lengths is None else fill_padding(self, value)

    def at(self, index: tuple[int, ...]) -> Example:
        """One chain of a batch; start scores are shared by all, end scores are its own."""
        shared = self.transitions.dim() == 2
        return replace(
            self,
            emissions=self.emissions[index],
            transitions=self.transitions if shared else self.transitions[index],
            lengths=self.lengths[index],
            end=None if self.end is None else self.end[index],
        )


def transitions_shape(form: str, batch_shape: tuple, num_steps: int, num_states: int) -> tuple:
    square = (num_states, num_states)
    steps = (num_steps - 1,)
    return {
        "shared": square,
        "per_chain": (*batch_shape, *square),
        "per_step": batch_shape + steps + square,
    }[form]


def mixed_lengths(batch_shape: tuple, num_steps: int) -> Tensor:
    """T, 1, 0, T-1, ... in turn."""
    count = torch.Size(batch_shape).numel()
    cycle = torch.tensor([num_steps, 1, 0, num_steps - 1, max(num_steps - 2, 0)])
    return cycle[torch.arange(count) % len(cycle)].reshape(batch_shape)


def random_example(
    name: str = "random",
    batch_shape: tuple = (),
    form: str = "shared",
    num_steps: int = 4,
    num_states: int = 3,
    *,
    ends: bool = False,
    lengths: str | None = "mixed",
    scale: float = 1.0,
    seed: int = 0,
) -> Example:
    """Normal scores in float64. `ends` adds start and end scores."""
    generator = seeded(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64) * scale

    return Example(
        name,
        normal(*batch_shape, num_steps, num_states),
        normal(*transitions_shape(form, batch_shape, num_steps, num_states)),
        mixed_lengths(batch_shape, num_steps) if lengths == "mixed" else None,
        normal(num_states) if ends else None,
        normal(*batch_shape, num_states) if ends else None,
    )


def forbid_some(example: Example, seed: int = 0, share: float = 0.35) -> Example:
    """-inf in a share of all scores, none of them on one path that all chains of the batch keep."""
    generator = seeded(seed)
    num_steps, num_states = example.emissions.shape[-2:]
    kept = torch.randint(num_states, (num_steps,), generator=generator)
    steps = torch.arange(num_steps)

    def allowed(x: Tensor) -> Tensor:
        return torch.rand(x.shape, generator=generator) >= share

    masks = {name: allowed(x) for name, x in example.scores.items()}
    masks["emissions"][..., steps, kept] = True
    if example.transitions.dim() == example.emissions.dim() + 1:
        masks["transitions"][..., steps[:-1], kept[:-1], kept[1:]] = True
    else:
        masks["transitions"][..., kept[:-1], kept[1:]] = True
    for name in {"start", "end"} & masks.keys():
        masks[name][..., kept] = True
    scores = example.scores.items()
    return example.with_scores(*[torch.where(masks[name], x, -torch.inf) for name, x in scores])


def fill_padding(example: Example, value: float) -> Example:
    """A value in every entry beyond the lengths."""
    num_steps = example.emissions.shape[-2]
    padded = torch.arange(num_steps) >= example.lengths[..., None]
    emissions = example.emissions.masked_fill(padded[..., None], value)
    transitions = example.transitions
    if transitions.dim() == emissions.dim() + 1:
        transitions = transitions.masked_fill(padded[..., 1:, None, None], value)
    return replace(example, emissions=emissions, transitions=transitions)


def broadcast_example() -> Example:
    """Every argument with another batch shape; together (2, 3)."""
    plain = random_example("broadcast", (2, 3), "per_step", ends=True, seed=70)
    return replace(
        plain,
        emissions=plain.emissions[:, :1],
        transitions=plain.transitions[:1],
        lengths=torch.tensor([4, 0, 2]),
        start=plain.start,
        end=plain.end[0, 0],
    )


def _grid() -> list[Example]:
    """Batch shapes, forms of transitions, with and without start and end."""
    return [
        random_example(f"{batch_shape}-{form}-ends{ends:d}", batch_shape, form, ends=ends, seed=n)
        for n, batch_shape in enumerate(BATCH_SHAPES)
        for form in FORMS
        for ends in (False, True)
    ]


def _of_every_form(form: str, seed: int) -> list[Example]:
    batch = random_example(f"forbidden-{form}", (5,), form, ends=True, seed=seed)
    grid = random_example(f"forbidden-{form}-2d", (2, 3), form, lengths=None, seed=seed + 1)
    poisoned = random_example(f"nan-padding-{form}", (5,), form, ends=True, seed=seed + 2)
    both = random_example(f"forbidden-nan-{form}", (2, 3), form, ends=True, seed=seed + 3)
    return [
        forbid_some(batch, seed),
        forbid_some(grid, seed + 1),
        fill_padding(poisoned, torch.nan),
        fill_padding(forbid_some(both, seed + 3), torch.nan),
        random_example(f"one-state-{form}", (5,), form, num_states=1, ends=True, seed=seed),
        random_example(f"one-step-{form}", (5,), form, num_steps=1, ends=True, seed=seed),
        random_example(f"one-step-one-state-{form}", (2, 3), form, 1, 1, seed=seed),
    ]


def _registry() -> list[Example]:
    special = [e for n, form in enumerate(FORMS) for e in _of_every_form(form, 10 * n + 10)]
    empty = random_example("all-empty", (2, 3), ends=True, seed=60)
    no_batch = random_example("no-batch-empty", (), ends=True, seed=61)
    return [
        *_grid(),
        *special,
        broadcast_example(),
        replace(empty, lengths=torch.zeros(2, 3, dtype=torch.long)),
        replace(no_batch, lengths=torch.tensor(0)),
        random_example("sharp", (5,), "per_chain", scale=30.0, seed=62),
    ]


EXAMPLES = _registry()
over_examples = pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
