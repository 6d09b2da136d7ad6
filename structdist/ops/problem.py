"""What the dynamic programs of all structures have in common: their questions and answers.

A *problem* is a flat batch of structures of one kind, as plain tensors: the scores of the *parts*
that the score of an outcome adds up from (nodes and edges of a chain), and lengths. A *path* is an
outcome in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

Needs = Sequence[bool]  # which inputs want a gradient
Grads = Sequence[Tensor | None]  # one for each input
Values = Sequence[Tensor | None]  # values on parts, one for each tensor of scores; None is 0
ForwardState = tuple[
    Tensor | None, ...
]  # what the forward pass found; only its backend looks inside
Temperature = float | Tensor  # of each draw: a number, or float64 that broadcasts to [S, N]

P = TypeVar("P", bound="Problem")


class Problem(Protocol):
    """N structures of one kind. Made from its scores and its lengths, in that order."""

    @property
    def scores(self) -> tuple[Tensor, ...]:
        """The scores of all parts, in the structure's order: what answers are differentiated by."""

    @property
    def lengths(self) -> Tensor:
        """[N]: integers. What stands beyond them is padding."""

    def with_scores(self: P, scores: Sequence[Tensor]) -> P:
        """The same problem with other scores."""

    @classmethod
    def example(cls: type[P], device: torch.device, dtype: torch.dtype) -> P:
        """A small problem, to ask backends whether they could serve its like."""

    def with_values(self: P, values: Values) -> tuple[P, tuple[Tensor, ...]]:
        """The same problem, and values on its parts, every pair of tensors of one shape."""

    def weighing(self, part: int, weights: Tensor) -> Values:
        """Values whose expectation is the sum of weights times the marginals of a kind of part."""

    def shape_of_part(self, part: int) -> Sequence[int]:
        """Of the marginals of a kind of part: [N, ...]."""

    @property
    def shape_of_choices(self) -> Sequence[int]:
        """Of the relaxed choices of one draw: [N, T, ...]. Its noise has the same."""


class Expected(NamedTuple):
    """An expectation (or an entropy), and what its adjoint wants to know again."""

    value: Tensor  # [N] float64
    given: Tensor  # float64: conditional expectations, of the backend's own shape


class Draw(NamedTuple):
    soft: Tensor  # [S, N, ...]: relaxed events, zeros in the padding
    path: Tensor  # [S, N, T]: their hard choices, zeros in the padding


class Best(NamedTuple):
    path: Tensor  # [N, T], zeros in the padding
    score: Tensor  # [N] float64, -inf where no path is allowed


class KBest(NamedTuple):
    paths: Tensor  # [k, N, T], zeros in the padding and where there is no k-th path
    scores: Tensor  # [k, N] float64, best first, -inf where there is no k-th path
