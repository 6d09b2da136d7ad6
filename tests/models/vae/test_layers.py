"""Layers do what those of torch do: random rates and means are within 6 standard errors."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from models.vae.layers import LEVELS, BothWays, Dropout

SIZE = 100_003  # no multiple of four: the last random number decides for fewer values


def dropped(rate: float) -> torch.Tensor:
    torch.manual_seed(0)
    return Dropout(rate)(torch.ones(SIZE))


@pytest.mark.parametrize("rate", [0.01, 0.2, 0.5, 0.9])
def test_rate(rate):
    error = (rate * (1 - rate) / SIZE) ** 0.5
    assert (dropped(rate) == 0).double().mean() == pytest.approx(rate, abs=6 * error)


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.2])
def test_what_is_kept_is_scaled_up(rate):
    """By the rate as it was rounded, so that the mean is kept exactly."""
    values = dropped(rate)
    rounded = round(rate * LEVELS) / LEVELS
    assert values.unique().tolist() == pytest.approx([0, 1 / (1 - rounded)], rel=1e-6)


def test_values_are_dropped_independently():
    """Those that share a random number too."""
    kept = (dropped(0.5) > 0).double()
    for apart in (1, 2, 3, 4):
        together = (kept[apart:] * kept[:-apart]).mean()
        assert together == pytest.approx(0.25, abs=6 * (0.25 * 0.75 / SIZE) ** 0.5)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0, 4)])
def test_shape_and_type_are_kept(shape):
    values = torch.ones(shape, dtype=torch.float64)
    found = Dropout(0.5)(values)
    assert found.shape == values.shape
    assert found.dtype == values.dtype


def test_rows_of_another_tensor():
    """Values need not lie in one piece."""
    values = torch.arange(1.0, 13.0).reshape(3, 4).T
    found = Dropout(0.5)(values)
    assert_close(found[found > 0], 2 * values[found > 0])


def test_nothing_happens_outside_training():
    values = torch.rand(50)
    assert Dropout(0.9).eval()(values) is values
    assert Dropout(0.0)(values) is values


def test_gradient_is_the_mask():
    torch.manual_seed(0)
    values = torch.rand(100, requires_grad=True)
    found = Dropout(0.3)(values)
    found.sum().backward()
    assert_close(values.grad * values.detach(), found.detach())


def test_the_seed_decides():
    assert torch.equal(dropped(0.3), dropped(0.3))


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan")])
def test_rates_that_make_no_sense(rate):
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        Dropout(rate)


@pytest.mark.parametrize("layers", [1, 2])
def test_both_ways_is_the_bidirectional_lstm_of_torch_on_packed_sentences(layers: int) -> None:
    torch.manual_seed(0)
    ours = BothWays(3, 4, layers).double()
    packs = torch.nn.LSTM(3, 4, layers, batch_first=True, bidirectional=True).double()
    packs.load_state_dict(ours.state_dict())
    lengths = torch.tensor([5, 1, 3, 7])
    inputs = torch.randn(4, 7, 3, dtype=torch.double, requires_grad=True)
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(packs(packed)[0], batch_first=True)
    weights = torch.randn_like(expected) * (torch.arange(7) < lengths.unsqueeze(-1)).unsqueeze(-1)
    found = ours(inputs, lengths)
    assert torch.allclose(found * weights, expected * weights, atol=1e-12)
    gradients = torch.autograd.grad((found * weights).sum(), [inputs, *ours.parameters()])
    references = torch.autograd.grad((expected * weights).sum(), [inputs, *packs.parameters()])
    for gradient, reference in zip(gradients, references, strict=True):
        assert torch.allclose(gradient, reference, atol=1e-12)
