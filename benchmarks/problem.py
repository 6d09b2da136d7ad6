"""What a contender is given: random chains of one size."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import Parameter


@dataclass(frozen=True)
class Size:
    batch: int
    length: int
    states: int

    def __str__(self) -> str:
        return f"B={self.batch} T={self.length} K={self.states}"


@dataclass(frozen=True)
class Inputs:
    """One batch of chains, and weights that turn an output into a scalar to differentiate."""

    emissions: Tensor  # [B, T, K]
    transitions: Tensor  # [K, K]
    chain_weights: Tensor  # [B]
    event_weights: Tensor  # [B, T, K]

    def leaves(self) -> tuple[Tensor, Tensor]:
        """New leaves over the same numbers. Transitions are a parameter, as in most models."""
        return self.emissions.detach().requires_grad_(), Parameter(self.transitions)

    def weights_like(self, output: Tensor) -> Tensor:
        return self.chain_weights if output.dim() == 1 else self.event_weights

    def to(self, dtype: torch.dtype) -> Inputs:
        return Inputs(*(x.to(dtype) for x in vars(self).values()))

    def items(self, start: int, stop: int) -> Inputs:
        """Some of the batch; the transitions are shared."""
        return Inputs(
            self.emissions[start:stop],
            self.transitions,
            self.chain_weights[start:stop],
            self.event_weights[start:stop],
        )


def make_inputs(size: Size, device: torch.device, seed: int) -> Inputs:
    """Standard normal scores in float32, the same on every device for one seed."""
    generator = torch.Generator().manual_seed(seed)
    batch, length, states = size.batch, size.length, size.states
    shapes = [(batch, length, states), (states, states), (batch,), (batch, length, states)]
    return Inputs(*(torch.randn(s, generator=generator).to(device) for s in shapes))


def identical_chains(
    size: Size, device: torch.device, seed: int, dtype: torch.dtype = torch.float32
) -> Inputs:
    """A batch of copies of one chain, for tests of samplers."""
    one = make_inputs(Size(1, size.length, size.states), device, seed).to(dtype)
    return Inputs(
        one.emissions.repeat(size.batch, 1, 1),
        one.transitions,
        one.chain_weights.repeat(size.batch),
        one.event_weights.repeat(size.batch, 1, 1),
    )
