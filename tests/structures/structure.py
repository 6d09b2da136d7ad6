"""What a structure must say of itself to be tested, and what an example of it is.

The generic tests (`tests/test_*.py`, `tests/ops/test_kernels.py`) ask for nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import torch
from hypothesis.strategies import SearchStrategy
from torch import Tensor

from structdist import StructuredDistribution
from structdist.ops import Problem
from tests.enumeration import BatchOracle

COUNTS = ("renyi_0",)  # quantities that only count, and have no gradient
BATCH_SHAPES = [(), (5,), (2, 3)]

Answerer = StructuredDistribution | BatchOracle
Ask = Callable[[Any], Tensor]  # of an Answerer
Sampler = Callable[[Any, tuple, torch.Generator], Tensor]  # integer paths [*S, *B, T]
Self = TypeVar("Self", bound="BaseExample")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class BaseExample(ABC):
    """The arguments of a distribution; compared by identity, so that caches can hold it.

    A structure adds its arguments as fields, which have the names of those of its class; `lengths`
    is one of them. The first of `SCORES`, if it is given, has the shape of events.
    """

    SCORES: ClassVar[tuple[str, ...]]  # the fields that answers are differentiated by

    name: str

    @abstractmethod
    def crf(self, **options: Any) -> Any:
        """The distribution."""

    @abstractmethod
    def oracle(self) -> Any:
        """The same by enumeration."""

    @abstractmethod
    def with_padding(self: Self, value: float) -> Self:
        """The same example, with a value in every entry that lies beyond the lengths."""

    @abstractmethod
    def at(self: Self, index: tuple[int, ...]) -> Self:
        """One structure of the batch, on its own."""

    @property
    def scores(self) -> dict[str, Tensor]:
        """The real-valued arguments that are given."""
        given = {name: getattr(self, name) for name in self.SCORES}
        return {name: x for name, x in given.items() if x is not None}

    def with_scores(self: Self, *scores: Tensor) -> Self:
        """The same example with other real-valued arguments, in the order of `scores`."""
        return replace(self, **dict(zip(self.scores, scores, strict=True)))

    def to(self: Self, dtype: torch.dtype) -> Self:
        return self.with_scores(*[x.to(dtype) for x in self.scores.values()])

    def leaves(self: Self) -> Self:
        """The same example with fresh leaves that require gradients."""
        fresh = [x.detach().clone().requires_grad_() for x in self.scores.values()]
        return self.with_scores(*fresh)

    def rescored(self: Self, seed: int = 99) -> Self:
        """Another distribution over the same paths: other scores, the same ones forbidden."""
        moved = [x + normal(*x.shape, seed=seed + n) for n, x in enumerate(self.scores.values())]
        return self.with_scores(*moved)

    def untouchable(self) -> dict[str, Tensor]:
        """Where gradients must be 0: what is forbidden, and what stands beyond the lengths."""
        forbidden = {name: x == -torch.inf for name, x in self.scores.items()}
        padded = self.with_padding(torch.nan).scores
        return {name: mask | padded[name].isnan() for name, mask in forbidden.items()}


class Structure(ABC):
    """One kind of distribution. An instance in `STRUCTURES` is all that a new one needs."""

    name: str  # as `structdist.ops.backends()` has it
    problem: type  # what its kernels are given
    forms: Sequence[str]  # in which its arguments come; names that `random` understands

    # Examples, all in float64.
    examples: Sequence[BaseExample]  # with every feature of the contract
    few: Sequence[BaseExample]  # a handful of them, to run on every backend
    awkward: Sequence[BaseExample]  # those with forbidden scores, NaN in the padding, no steps
    small: Sequence[BaseExample]  # small enough for finite differences
    drawn: Sequence[BaseExample]  # for statistics of whole paths: few paths, unequal lengths
    forbidding: Sequence[BaseExample]  # those of `drawn` that forbid something
    twins: BaseExample  # two identical structures in a batch, of few paths

    # Questions.
    quantities: Mapping[str, Ask]  # real-valued answers, of a distribution and of its oracle
    samplers: Mapping[str, Sampler]  # exact ones
    relaxations: Mapping[str, Callable[..., Tensor]]  # relaxed draws, with the options of `rsample`

    # Flat problems for kernels, in float64: mixed lengths, NaN in the padding.
    problems: Mapping[str, Problem]
    few_problems: Mapping[str, Problem]  # a handful of them
    parts: Sequence[str]  # names of the kinds of parts; the scores of the first are [N, T, ...]

    @abstractmethod
    def random(
        self,
        name: str,
        batch_shape: tuple = (),
        form: str | None = None,
        *,
        num_steps: int = 4,
        lengths: str | None = "mixed",
        seed: int = 0,
    ) -> BaseExample:
        """Normal scores. Lengths are T, 1, 0, T-1, ... in turn (`mixed`), or not given."""

    @abstractmethod
    def forbid_some(self, example: Any, seed: int) -> BaseExample:
        """-inf in a share of all scores, with one path that all structures of a batch keep."""

    @abstractmethod
    def any_example(self, batch_shapes: Sequence[tuple] = BATCH_SHAPES) -> SearchStrategy:
        """Any example at all, for hypothesis."""

    @abstractmethod
    def all_paths(self, event_shape: torch.Size) -> Tensor:
        """[P, T]: every path of every length up to T (some may appear more than once)."""

    @abstractmethod
    def raw_events(self, paths: Tensor, event_shape: torch.Size, lengths: Tensor) -> Tensor:
        """Paths [..., *B, T] as bool events, with anything beyond the lengths [*B]."""

    @abstractmethod
    def kernel_values(self, problem: Any) -> Sequence[Sequence[Tensor]]:
        """Values on parts: first in the form of the scores, then in larger forms, if any."""

    def noise_shape(self, problem: Any) -> torch.Size:
        """Of the Gumbel noise of one draw from a problem: that of events, if not said otherwise."""
        return problem.scores[0].shape[1:]

    def some_paths(self, d: Answerer) -> Tensor:
        """[P, *B, T]: every path, for every structure of the batch."""
        return paths_over_batch(self.all_paths(d.event_shape), d.batch_shape)

    @property
    def smooth_quantities(self) -> dict[str, Ask]:
        """Those that have a gradient."""
        return {name: ask for name, ask in self.quantities.items() if name not in COUNTS}

    @property
    def checked_quantities(self) -> list[str]:
        """The names of those that finite differences check: no two are the same question."""
        return [name for name in self.smooth_quantities if name not in ("renyi_1", "mean")]

    @property
    def relaxed_draws(self) -> dict[str, Ask]:
        """Relaxed draws with frozen noise, as functions of the distribution alone."""

        def frozen(draw: Callable[..., Tensor], **options: Any) -> Ask:
            return lambda d: draw(d, (3,), generator=seeded(8), **options)

        warm = {name: frozen(draw) for name, draw in self.relaxations.items()}
        return {**warm, "rsample-cold": frozen(self.relaxations["rsample"], temperature=0.1)}

    @property
    def real_answers(self) -> dict[str, Ask]:
        """Everything that may have a gradient."""
        return {**self.quantities, **self.relaxed_draws}

    @property
    def smooth_answers(self) -> dict[str, Ask]:
        """Everything that has a gradient."""
        return {**self.smooth_quantities, **self.relaxed_draws}

    @property
    def asks(self) -> dict[str, Ask]:
        """Every question about one distribution, with frozen noise where it needs any."""
        return {
            **self.real_answers,
            "sample": lambda d: d.sample((3,), generator=seeded(1)),
            "straight": lambda d: d.rsample((3,), straight_through=True, generator=seeded(1)),
            "argmax": lambda d: d.argmax,
        }


def paths_over_batch(paths: Tensor, batch_shape: torch.Size) -> Tensor:
    """Paths [P, T] as [P, *B, T]."""
    ones = (1,) * len(batch_shape)
    return paths.view(len(paths), *ones, -1).expand(-1, *batch_shape, -1)
