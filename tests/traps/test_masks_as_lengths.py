"""Masks are not lengths: they are refused with advice, or turned into lengths."""

from __future__ import annotations

import pytest
import torch

from structdist import LinearChainCRF, lengths_from_mask
from tests.traps.chains import chain, gradients, leaves, random_paths, scores

ADVICE = r"structdist\.lengths_from_mask\(mask\)"


def mask_of(lengths: list[int], num_steps: int) -> torch.Tensor:
    return torch.arange(num_steps) < torch.tensor(lengths)[:, None]


MASKS = {
    "B == T": ((4,), mask_of([4, 2, 1, 0], 4)),
    "B == 1": ((1,), mask_of([3], 4)),
    "B != T": ((2,), mask_of([3, 4], 4)),
    "more batch dimensions": ((2, 4), mask_of([4, 2, 1, 0], 4).expand(2, 4, 4)),
    "no batch": ((), mask_of([3], 4)[0]),
    "shared emissions": ((1,), mask_of([3, 4, 1], 4)),
    "shared emissions without a batch": ((), mask_of([3, 4, 1], 4)),
    "one chain of a batch of one": ((1,), mask_of([3], 4)[0]),
    "all ones": ((4,), torch.ones(4, 4).bool()),
    "all zeros": ((1,), torch.zeros(1, 4).bool()),
    "one step": ((3,), torch.ones(3, 1).bool()),
}
over_masks = pytest.mark.parametrize(("batch_shape", "mask"), MASKS.values(), ids=MASKS)


@over_masks
@pytest.mark.parametrize("dtype", [torch.long, torch.int32, torch.uint8, torch.bool, torch.float])
def test_a_mask_is_refused_with_advice(batch_shape, mask, dtype):
    for validate_args in (True, False):
        with pytest.raises(ValueError, match=f"lengths.*{ADVICE}"):
            chain(batch_shape, mask.shape[-1], lengths=mask.to(dtype), validate_args=validate_args)


LENGTHS = {
    "zeros and ones": ((4,), torch.tensor([1, 0, 1, 1])),
    "zeros and ones in a square": ((4, 4), torch.ones(4, 4, dtype=torch.long)),
    "one for all": ((4,), torch.tensor([1])),
    "a number": ((4,), torch.tensor(1)),
    "for a row of chains": ((2, 4), torch.tensor([1, 0, 1, 1])),
    "others than zeros and ones": ((1,), torch.tensor([[4, 2, 1, 0]])),
    "none": ((0,), torch.zeros(0, dtype=torch.long)),
}


@pytest.mark.parametrize(("batch_shape", "lengths"), LENGTHS.values(), ids=LENGTHS)
def test_lengths_are_not_taken_for_a_mask(batch_shape, lengths):
    dist = chain(batch_shape, 4, lengths=lengths)
    assert torch.equal(dist.lengths, lengths.expand(dist.batch_shape))


@pytest.mark.parametrize("dtype", [torch.bool, torch.long, torch.uint8, torch.float32])
def test_lengths_from_a_mask(dtype):
    lengths = [4, 0, 1, 3]
    found = lengths_from_mask(mask_of(lengths, 4).to(dtype))
    assert found.dtype == torch.long
    assert found.tolist() == lengths
    assert lengths_from_mask(mask_of(lengths, 4).view(2, 2, 4).to(dtype)).shape == (2, 2)
    assert lengths_from_mask(mask_of([3], 4)[0].to(dtype)).item() == 3


def test_lengths_from_a_mask_without_rows_or_steps():
    assert lengths_from_mask(torch.zeros(0, 4).bool()).shape == (0,)
    assert lengths_from_mask(torch.zeros(3, 0).bool()).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "row", [[0, 1, 1, 1], [0, 0, 0, 1], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 0, 0]]
)
@pytest.mark.parametrize("dtype", [torch.bool, torch.long, torch.float32])
def test_holes_and_padding_on_the_left_are_refused(row, dtype):
    mask = torch.tensor([[[1, 1, 0, 0], [1, 1, 1, 1]], [row, [0, 0, 0, 0]]]).to(dtype)
    with pytest.raises(ValueError, match=r"mask must be ones and then zeros.*\(1, 0\)"):
        lengths_from_mask(mask)


@pytest.mark.parametrize(
    "mask", [torch.tensor([[2, 1, 0]]), torch.tensor([[0.5, 0.0]]), torch.tensor([float("nan")])]
)
def test_other_numbers_are_refused(mask):
    with pytest.raises(ValueError, match="mask must hold zeros and ones"):
        lengths_from_mask(mask)


@pytest.mark.parametrize("mask", [[[1, 0]], None, torch.tensor(True)])
def test_what_is_no_mask_is_refused(mask):
    with pytest.raises(ValueError, match="mask must be"):
        lengths_from_mask(mask)


def test_a_mask_without_numbers():
    assert lengths_from_mask(torch.ones(3, 4, device="meta")).shape == (3,)
    found = torch.func.vmap(lengths_from_mask)(mask_of([3, 0, 4], 4))
    assert found.tolist() == [3, 0, 4]


def test_a_loss_is_that_of_the_true_lengths():
    lengths, tags = torch.tensor([5, 0, 2, 1]), random_paths(4, 5, num_states=3)
    by_mask, by_length = leaves(scores((4,), 5)), leaves(scores((4,), 5))
    mask = mask_of(lengths.tolist(), 5).long()
    loss = -LinearChainCRF(**by_mask, lengths=lengths_from_mask(mask)).log_prob(tags)
    expected = -LinearChainCRF(**by_length, lengths=lengths).log_prob(tags)
    assert torch.equal(loss, expected)
    wanted = gradients(expected, by_length)
    for name, grad in gradients(loss, by_mask).items():
        assert torch.equal(grad, wanted[name])
    alone = [chain((4,), 5).log_prob(tags)[0], torch.tensor(0.0).double()]
    torch.testing.assert_close(-loss[:2].detach(), torch.stack(alone))
