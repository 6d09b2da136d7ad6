"""Small chains for the tests of this folder."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist import LinearChainCRF

BACKENDS = ("native", "rescaled", "reference")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64).to(dtype)


def scores(
    batch_shape: tuple[int, ...] = (),
    num_steps: int = 4,
    num_states: int = 3,
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> dict[str, Tensor]:
    """Normal scores of every kind, with shared transitions."""
    shapes = {
        "emissions": (*batch_shape, num_steps, num_states),
        "transitions": (num_states, num_states),
        "start": (num_states,),
        "end": (*batch_shape, num_states),
    }
    return {
        name: normal(*shape, seed=10 * seed + n, dtype=dtype)
        for n, (name, shape) in enumerate(shapes.items())
    }


def chain(
    batch_shape: tuple[int, ...] = (),
    num_steps: int = 4,
    num_states: int = 3,
    *,
    lengths: Tensor | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    validate_args: bool | None = None,
) -> LinearChainCRF:
    """A chain with normal scores of every kind."""
    made = scores(batch_shape, num_steps, num_states, seed=seed, dtype=dtype)
    return LinearChainCRF(**made, lengths=lengths, validate_args=validate_args)


def leaves(given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same scores as fresh leaves that require gradients."""
    return {name: x.detach().clone().requires_grad_() for name, x in given.items()}


def gradients(answer: Tensor, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Of a weighted sum of all entries of an answer; 0 where it does not depend on an input."""
    weights = normal(*answer.shape, seed=77, dtype=answer.dtype)
    found = torch.autograd.grad(
        (answer * weights).sum(), list(inputs.values()), retain_graph=True, materialize_grads=True
    )
    return dict(zip(inputs, found, strict=True))


def random_paths(*shape: int, num_states: int, seed: int = 0) -> Tensor:
    return torch.randint(num_states, shape, generator=seeded(seed))
