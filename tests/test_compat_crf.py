"""`compat.CRF`: pytorch-crf's answers where that is right, its errors, and its state dicts."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch
import torchcrf
from torch import Tensor
from torch.distributions import Distribution
from torch.testing import assert_close

from structdist.compat import CRF
from structdist.compat.crf import REDUCTIONS

K, T, B = 4, 6, 3
LENGTHS = torch.tensor([6, 3, 1])
MASK = torch.arange(T) < LENGTHS.unsqueeze(-1)  # [B, T]


def both(batch_first: bool = True) -> tuple[CRF, torchcrf.CRF]:
    """The two layers in float64, with the same parameters."""
    torch.manual_seed(0)
    theirs = torchcrf.CRF(K, batch_first).double()
    torch.nn.init.normal_(theirs.transitions)
    ours = CRF(K, batch_first).double()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def problem(batch_first: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    emissions = torch.randn(B, T, K, generator=generator, dtype=torch.float64)
    tags = torch.randint(K, (B, T), generator=generator)
    given = (emissions, tags, MASK)
    return given if batch_first else tuple(x.transpose(0, 1) for x in given)


# Where pytorch-crf is right -------------------------------------------------------------------


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_likelihoods_and_gradients_are_those_of_pytorch_crf(
    reduction: str, masked: bool, batch_first: bool
):
    emissions, tags, mask = problem(batch_first)
    found = []
    for layer in both(batch_first):
        scores = emissions.clone().requires_grad_()
        value = layer(scores, tags, mask if masked else None, reduction=reduction)
        weights = torch.linspace(1, 2, value.numel(), dtype=torch.float64).view(value.shape)
        grads = torch.autograd.grad((value * weights).sum(), [scores, *layer.parameters()])
        found.append([value.detach(), *grads])
    assert_close(*found)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
def test_decoded_tags_are_those_of_pytorch_crf(batch_first: bool, dtype: torch.dtype):
    emissions, _, mask = problem(batch_first)
    ours, theirs = both(batch_first)
    expected = theirs.decode(emissions, mask)
    assert ours.decode(emissions, mask.to(dtype)) == expected
    assert ours.decode(emissions) == theirs.decode(emissions)
    assert [len(path) for path in expected] == LENGTHS.tolist()


def test_state_dicts_load_both_ways():
    ours, theirs = both()
    ours.reset_parameters()
    theirs.load_state_dict(ours.state_dict())
    assert all(map(torch.equal, ours.parameters(), theirs.parameters()))


def test_parameters_are_drawn_alike():
    torch.manual_seed(3)
    ours = CRF(K)
    torch.manual_seed(3)
    assert all(map(torch.equal, ours.parameters(), torchcrf.CRF(K).parameters()))
    assert repr(ours) == repr(torchcrf.CRF(K)) == "CRF(num_tags=4)"


BAD = {
    "emissions of two dimensions": {"emissions": torch.zeros(B, T)},
    "another number of tags": {"emissions": torch.zeros(B, T, K + 1)},
    "tags of another shape": {"tags": torch.zeros(B, T + 1, dtype=torch.long)},
    "a mask of another shape": {"mask": MASK[:2]},
    "a first step that is off": {"mask": MASK.flip(-1)},
    "an unknown reduction": {"reduction": "foo"},
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_in_the_words_of_pytorch_crf(case: str):
    emissions, tags, mask = problem()
    given = {"emissions": emissions, "tags": tags, "mask": mask, **BAD[case]}
    messages = []
    for layer in both():
        with pytest.raises(ValueError) as error:  # noqa: PT011, compared below
            layer(**given)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_there_must_be_a_tag():
    with pytest.raises(ValueError, match="invalid number of tags: 0"):
        CRF(0)


# Where it differs -----------------------------------------------------------------------------


def test_what_the_mask_leaves_out_does_not_matter():
    """Label padding of -100, and NaN among the emissions, whose gradient there is 0."""
    emissions, tags, mask = problem()
    crf, _ = both()
    expected = crf(emissions, tags, mask, reduction="none").detach()
    spoilt = torch.where(mask.unsqueeze(-1), emissions, torch.nan).requires_grad_()
    found = crf(spoilt, torch.where(mask, tags, -100), mask, reduction="none")
    assert torch.equal(found, expected)
    found.sum().backward()
    assert not spoilt.grad[~mask].any()
    assert spoilt.grad.isfinite().all()
    assert crf.decode(spoilt, mask) == crf.decode(emissions, mask)


def test_masks_with_holes_and_tags_out_of_range_are_errors():
    emissions, tags, mask = problem()
    crf, _ = both()
    holed = mask.clone()
    holed[1, 4] = True
    with pytest.raises(ValueError, match=r"mask .* at batch index \(1,\) it begins again"):
        crf(emissions, tags, holed)
    with pytest.raises(ValueError, match=r"value must lie in 0\.\.3 .* got -100 at step 2"):
        crf(emissions, tags.index_fill(1, torch.tensor([2]), -100), mask)


def test_forbidden_transitions_have_finite_gradients():
    emissions, tags, mask = problem()
    crf, _ = both()
    forbidden = torch.zeros(K, K, dtype=torch.bool)
    forbidden[tags[0, 0], (tags[0, 1] + 1) % K] = True
    with torch.no_grad():
        crf.transitions.masked_fill_(forbidden, -torch.inf)
    crf.distribution(emissions, mask).entropy().sum().backward()
    assert crf.transitions.grad.isfinite().all()
    assert not crf.transitions.grad[forbidden].any()


def test_the_distribution_is_that_of_the_layer():
    emissions, tags, mask = problem(batch_first=False)
    crf, _ = both(batch_first=False)
    dist = crf.distribution(emissions, mask)
    assert (dist.batch_shape, dist.event_shape) == ((B,), (T, K))
    log_prob = dist.log_prob(tags.transpose(0, 1)).sum()
    assert_close(log_prob, crf(emissions, tags, mask))


def test_scripting_is_refused_and_export_is_offered():
    with pytest.raises(NotImplementedError, match=r"torch\.export\.export"):
        torch.jit.script(CRF(K))


class BestTags(torch.nn.Module):
    """What a user exports to decode."""

    def __init__(self, crf: CRF) -> None:
        super().__init__()
        self.crf = crf

    def forward(self, emissions: Tensor, mask: Tensor) -> Tensor:
        return self.crf.distribution(emissions, mask).argmax


def test_the_layer_exports():
    Distribution.set_default_validate_args(False)
    emissions, tags, mask = problem()
    crf, _ = both()
    program = torch.export.export(crf, (emissions, tags, mask))
    other = emissions.flip(0), tags.flip(1), mask
    assert_close(program.module()(*other), crf(*other))
    decoder = torch.export.export(BestTags(crf), (emissions, mask)).module()
    best = decoder(emissions.flip(0), mask).tolist()
    trimmed = [row[:size] for row, size in zip(best, LENGTHS.tolist(), strict=True)]
    assert trimmed == crf.decode(emissions.flip(0), mask)


# Without torch-struct -------------------------------------------------------------------------


def test_torch_struct_is_not_needed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch_struct", None)
    monkeypatch.delitem(sys.modules, "structdist.compat")
    compat = importlib.import_module("structdist.compat")
    assert compat.CRF is CRF
    with pytest.raises(ImportError, match=r'pip install "structdist\[torch-struct\]"'):
        compat.TorchStructLinearChainCRF  # noqa: B018, asked for to see the error
    with pytest.raises(AttributeError, match="has no attribute 'TorchCRF'"):
        compat.TorchCRF  # noqa: B018, likewise


def test_every_public_name_is_there():
    compat = importlib.import_module("structdist.compat")
    assert all(hasattr(compat, name) for name in compat.__all__)
