"""Linear chains whose arguments change, are wrong without a check, or live elsewhere."""

import torch
from torch.testing import assert_close

from structdist import LinearChainCRF
from tests.chains import random_example


def test_a_change_in_place_of_each_argument_is_noticed():
    example = random_example("modes", (2, 3), ends=True, seed=1).leaves()
    crf = LinearChainCRF(example.emissions, example.transitions)
    crf.log_partition.sum().backward()
    with torch.no_grad():
        example.emissions.add_(torch.rand_like(example.emissions))
        example.transitions.mul_(2)
    fresh = LinearChainCRF(example.emissions, example.transitions)
    assert_close(crf.log_partition, fresh.log_partition)
    assert_close(crf.entropy(), fresh.entropy())


def test_lengths_are_the_callers_no_longer():
    lengths = torch.tensor([3, 2])
    crf = LinearChainCRF(torch.randn(2, 3, 4), torch.randn(4, 4), lengths)
    lengths += 10**8
    assert crf.lengths.tolist() == [3, 2]
    assert crf.log_partition.isfinite().all()


def test_bad_lengths_without_validation_stay_within_memory():
    emissions, lengths = torch.randn(3, 5, 4), torch.tensor([5, 1000, -7])
    crf = LinearChainCRF(emissions, torch.zeros(4, 4), lengths, validate_args=False)
    assert_close(crf.log_partition[0], emissions[0].logsumexp(-1).sum())
    assert crf.sample_paths((2,)).shape == (2, 3, 5)


def test_nan_without_validation_stays_nan():
    emissions = torch.zeros(2, 3, 2)
    emissions[1, 1, 0] = torch.nan
    crf = LinearChainCRF(emissions, torch.zeros(2, 2), validate_args=False)
    assert crf.log_partition.isnan().tolist() == [False, True]


def test_default_device_does_not_matter():
    crf = LinearChainCRF(torch.randn(2, 3, 4), torch.randn(4, 4))
    with torch.device("meta"):
        assert crf.entropy().device.type == "cpu"
        assert crf.sample_paths().device.type == "cpu"
        assert crf.argmax.device.type == "cpu"
