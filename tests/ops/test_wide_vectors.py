"""Vectors of 64 bytes give what vectors of 32 bytes do, to the bit."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

from structdist import LinearChainCRF, SemiMarkovCRF
from structdist.ops import native


@contextmanager
def wide_vectors(wanted: bool):
    before = native.library.library.use_wide_vectors(int(wanted))
    try:
        yield
    finally:
        native.library.library.use_wide_vectors(before)


def has_wide_vectors() -> bool:
    if native.library.unavailable is not None:
        return False
    with wide_vectors(True):
        return bool(native.library.library.use_wide_vectors(1))


pytestmark = pytest.mark.skipif(not has_wide_vectors(), reason="this processor lacks AVX-512")

# Of each kind of tile, at the end of a row and before it; whole vectors, and a half one at the end.
STATES = {
    torch.float32: (41, 48, 50, 57, 64, 65, 72, 73, 81, 96, 112, 120, 128, 143, 200),
    torch.float64: (21, 24, 25, 29, 32, 33, 36, 37, 41, 48, 56, 60, 64, 71, 100),
}
CASES = [(dtype, states) for dtype, all_states in STATES.items() for states in all_states]


def answers(dtype: torch.dtype, states: int, durations: int | None) -> list[torch.Tensor]:
    """Log Z and entropy of chains of several lengths, and the gradients of both."""
    generator = torch.Generator().manual_seed(states)
    shapes = [(6, 9, states), (states, states)] + [(durations, states)] * (durations is not None)
    leaves = [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in shapes]
    structure = LinearChainCRF if durations is None else SemiMarkovCRF
    dist = structure(*leaves, lengths=torch.tensor([9, 9, 5, 1, 0, 8]))
    values = [dist.log_partition, dist.entropy()]
    return values + [grad for value in values for grad in torch.autograd.grad(value.sum(), leaves)]


@pytest.mark.parametrize("durations", [None, 3])
@pytest.mark.parametrize(("dtype", "states"), CASES)
def test_the_same_bits(dtype, states, durations):
    with wide_vectors(False):
        expected = answers(dtype, states, durations)
    with wide_vectors(True):
        found = answers(dtype, states, durations)
    for wide, narrow in zip(found, expected, strict=True):
        assert torch.equal(wide, narrow)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 63, 1000, 40_001])  # the last is made in two pieces
def test_the_same_noise(dtype, count):
    with wide_vectors(False):
        expected = native.library.gumbel_noise_of(7, (count,), dtype)
    with wide_vectors(True):
        found = native.library.gumbel_noise_of(7, (count,), dtype)
    assert torch.equal(found, expected)
