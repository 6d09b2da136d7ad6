"""What a contender is given: random chains of one size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import torch
from torch import Tensor
from torch.nn import Parameter

Self = TypeVar("Self", bound="Inputs")


@dataclass(frozen=True)
class Size:
    batch: int
    length: int
    states: int

    def __str__(self) -> str:
        return f"B={self.batch} T={self.length} K={self.states}"

    def inputs(self, draw: Callable[..., Tensor]) -> Inputs:
        """Chains of this size, of the numbers that `draw` makes for a shape."""
        nodes, edges = (self.batch, self.length, self.states), (self.states, self.states)
        return Inputs(draw(nodes), draw(edges), draw((self.batch,)), draw(nodes))


@dataclass(frozen=True)
class Inputs:
    """One batch of chains, and weights that turn an output into a scalar to differentiate."""

    emissions: Tensor  # [B, T, K]
    transitions: Tensor  # [K, K]
    chain_weights: Tensor  # [B]
    event_weights: Tensor  # [B, T, K]

    SCORES: ClassVar = ("emissions", "transitions")  # what works are functions of
    SHARED: ClassVar = ("transitions",)  # by all chains

    @property
    def scores(self) -> tuple[Tensor, ...]:
        return tuple(getattr(self, name) for name in self.SCORES)

    def leaves(self) -> tuple[Tensor, ...]:
        """New leaves over the same scores. Shared ones are parameters, as in most models."""
        return tuple(
            Parameter(x) if name in self.SHARED else x.detach().requires_grad_()
            for name, x in zip(self.SCORES, self.scores, strict=True)
        )

    def with_scores(self: Self, *scores: Tensor) -> Self:
        return replace(self, **dict(zip(self.SCORES, scores, strict=True)))

    def weights_like(self, output: Tensor) -> Tensor:
        return self.chain_weights if output.dim() == 1 else self.event_weights

    def with_constant_reward(self: Self) -> Self:
        """With weights that give every event of a chain the same reward."""
        return replace(self, event_weights=torch.ones_like(self.event_weights))

    def to(self: Self, dtype: torch.dtype) -> Self:
        return replace(self, **{name: x.to(dtype) for name, x in vars(self).items()})

    def items(self: Self, start: int, stop: int) -> Self:
        """Some of the batch."""
        return self._chain_by_chain(lambda x: x[start:stop])

    def repeat(self: Self, count: int) -> Self:
        """So many copies of every chain."""
        return self._chain_by_chain(lambda x: x.repeat(count, *[1] * (x.dim() - 1)))

    def _chain_by_chain(self: Self, change: Callable[[Tensor], Tensor]) -> Self:
        own = {name: x for name, x in vars(self).items() if name not in self.SHARED}
        return replace(self, **{name: change(x) for name, x in own.items()})


@dataclass(frozen=True)
class SegmentSize(Size):
    longest: int

    def __str__(self) -> str:
        return f"B={self.batch} T={self.length} L={self.longest} K={self.states}"

    def inputs(self, draw: Callable[..., Tensor]) -> SegmentInputs:
        batch, length, states = self.batch, self.length, self.states
        return SegmentInputs(
            draw((batch, length, states)),
            draw((states, states)),
            draw((batch,)),
            draw((batch, length, self.longest, states)),
            draw((self.longest, states)),
            draw((batch, length, states + 1)),
        )


@dataclass(frozen=True)
class SegmentInputs(Inputs):
    """The same of semi-Markov chains, whose events are [B, T, L, K]."""

    durations: Tensor  # [L, K]
    token_weights: Tensor  # [B, T, K + 1], of labels and, the last, of beginnings

    SCORES: ClassVar = ("emissions", "transitions", "durations")
    SHARED: ClassVar = ("transitions", "durations")

    def weights_like(self, output: Tensor) -> Tensor:
        if output.dim() == 3:
            return self.token_weights[..., : output.shape[-1]]
        return super().weights_like(output)

    def with_constant_reward(self) -> SegmentInputs:
        """One for every segment, given where they end, and for every label, but no beginning."""
        labels = torch.ones_like(self.token_weights)
        labels[..., -1] = 0
        return replace(super().with_constant_reward(), token_weights=labels)


def make_inputs(size: Size, device: torch.device, seed: int) -> Inputs:
    """Standard normal scores in float32, the same on every device for one seed."""
    generator = torch.Generator().manual_seed(seed)
    return size.inputs(lambda shape: torch.randn(shape, generator=generator).to(device))


def identical_chains(
    size: Size, device: torch.device, seed: int, dtype: torch.dtype = torch.float32
) -> Inputs:
    """A batch of copies of one chain, for tests of samplers."""
    return make_inputs(replace(size, batch=1), device, seed).to(dtype).repeat(size.batch)
