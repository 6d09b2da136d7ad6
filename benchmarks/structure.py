"""What a structure is to these benchmarks: who works on what, and what the right answers are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.contenders import Contender, Work
from benchmarks.operations import Operation
from benchmarks.problem import Inputs, Size
from structdist.ops import backends

DRAWS = 10_000  # of identical chains, in tests of samplers


@dataclass(frozen=True)
class Scaling:
    """What `scaling` does unless told otherwise."""

    base: Sequence[int]
    values: Mapping[str, Sequence[int]]  # by axis


class Structure(ABC):
    name: str  # on the command line
    registered_name: str  # by which structdist's backends know it
    form: str  # of its sizes
    axes: Sequence[str]  # the names of its numbers, in the order of the form
    size_type: type[Size]
    usual_sizes: str
    quick_sizes: str
    usual_grid: Mapping[str, Sequence[int]]  # by axis
    scaling: Scaling
    quick_scaling: Scaling
    claim: str | None = None  # how time should grow
    operations: Mapping[str, Operation]
    contenders: Sequence[Contender]
    reference: Mapping[str, Work]
    path_size: Size  # of chains with few outcomes, for tests of whole draws
    pair_size: Size  # with fewer still, for tests of pairs of draws
    gradient_size: Size

    def __str__(self) -> str:
        return self.name

    def size(self, *numbers: int) -> Size:
        """From numbers in the order of its form."""
        return self.size_type(**dict(zip(self.axes, numbers, strict=True)))

    def numbers(self, size: Size) -> tuple[int, ...]:
        """In the order of its form."""
        return tuple(getattr(size, name) for name in self.axes)

    def backend_in_use(self, device: torch.device) -> str:
        """By which backend structdist serves it there, if sizes are not too large for that."""
        mine = [s for s in backends(device) if s.structure == self.registered_name]
        return next(status.backend for status in mine if status.in_use)

    @abstractmethod
    def entries(self, size: Size) -> int:
        """How many entries a table of the reference has that autograd keeps, for one chain."""

    @abstractmethod
    def path_scores(self, inputs: Inputs, paths: Tensor) -> Tensor:
        """[B]: of paths [B, T]."""

    @abstractmethod
    def best_scores(self, inputs: Inputs) -> Tensor:
        """[B]: the most that a path can have."""

    @abstractmethod
    def outcomes(self, sample: Tensor, size: Size) -> Tensor:
        """[B]: the place of each draw, be it hard or relaxed, among all outcomes."""

    @abstractmethod
    def probabilities(self, inputs: Inputs) -> Tensor:
        """[outcomes] of the first chain, by enumeration."""

    @abstractmethod
    def is_hard(self, sample: Tensor) -> bool:
        """Are these events, with nothing relaxed?"""

    def simulate_perturb_and_map(self, inputs: Inputs) -> Tensor:
        """Counts [outcomes]: the best of all paths after noise, by brute force."""
        raise NotImplementedError(f"Perturb-and-MAP of a {self.name} is not compared")
