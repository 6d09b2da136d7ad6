"""One distribution over the words of the vocabulary and of the source, however it is asked for."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from models.data.batches import Batch, Source
from models.data.vocabulary import END, PAD, START, UNKNOWN
from models.vae.word_output import SMALLEST, WordOutput
from tests.models.conditional import NEW, conditional_batch
from tests.models.conftest import VOCABULARY_SIZE

SIZE = 5


@pytest.fixture
def output():
    torch.manual_seed(0)
    return WordOutput(SIZE, VOCABULARY_SIZE, copies=True).double()


@pytest.fixture
def batch():
    return conditional_batch()


@pytest.fixture
def features(batch):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*batch.words.shape, SIZE, generator=generator, dtype=torch.double)


@pytest.fixture
def weights(batch):
    """Of the items at each step [B, T, N], none in the padding."""
    generator = torch.Generator().manual_seed(2)
    shape = *batch.words.shape, batch.source.says.shape[1]
    scores = torch.randn(shape, generator=generator, dtype=torch.double)
    return scores.masked_fill(~batch.source.active.unsqueeze(1), -torch.inf).softmax(-1)


def all_log_probs(output: WordOutput, features: Tensor, weights: Tensor, says: Tensor) -> Tensor:
    """[B, T, V + N]."""
    steps = zip(features.unbind(1), weights.unbind(1), strict=True)
    return torch.stack([output.log_probs(*step, says) for step in steps], 1)


def saying(words: list[int]) -> Source:
    """One item for each, in one source."""
    numbers = torch.tensor([words])
    return Source(*[numbers] * len(Source._fields))


def gate_of(output: WordOutput, value: float) -> None:
    """The same for all features."""
    with torch.no_grad():
        output.gate.weight.zero_()
        output.gate.bias.fill_(value)


def test_scores_are_those_of_the_whole_distribution(output, features, weights, batch):
    log_probs = all_log_probs(output, features, weights, batch.source.says)
    expected = log_probs.gather(-1, batch.target.unsqueeze(-1)).squeeze(-1)
    found = output.score(features, weights, batch)
    assert_close(found, expected.masked_fill(~batch.active, 0.0))


def test_probabilities_sum_to_one(output, features, weights, batch):
    log_probs = all_log_probs(output, features, weights, batch.source.says)
    assert log_probs.shape[-1] == VOCABULARY_SIZE + batch.source.says.shape[1]
    assert_close(log_probs.exp().sum(-1), torch.ones(batch.words.shape, dtype=torch.double))


def test_marks_that_are_no_words_are_never_said(output, features, weights, batch):
    log_probs = all_log_probs(output, features, weights, batch.source.says)
    assert (log_probs[..., [PAD, START]] == -torch.inf).all()
    assert log_probs[..., [END, UNKNOWN]].isfinite().all()


def test_padding_counts_nothing(output, features, weights, batch):
    assert (output.score(features, weights, batch)[~batch.active] == 0).all()


def test_gradients(output, features, weights, batch):
    """Of features, weights and parameters, where words are said, copied, both or neither."""
    parts = [output.to_words.weight, output.to_words.bias, output.gate.weight, output.gate.bias]

    def score(features: Tensor, weights: Tensor, *_: Tensor) -> Tensor:
        return output.score(features, weights, batch)

    inputs = features.requires_grad_(), weights.clone().requires_grad_(), *parts
    assert torch.autograd.gradcheck(score, inputs)


def test_items_that_say_the_same_add_up(output):
    """A key mark stands for each word of its value."""
    gate_of(output, 0.0)
    features, weights = torch.zeros(1, SIZE).double(), torch.tensor([[0.5, 0.2, 0.3]]).double()
    says = saying([NEW, 4, NEW]).says
    probs = output.log_probs(features, weights, says).exp()[0]
    written = (output.to_words.bias + output.never).softmax(-1)
    assert_close(probs[NEW], torch.tensor(0.4).double())
    assert_close(probs[4], 0.5 * written[4] + 0.1)
    assert_close(probs[5], 0.5 * written[5])


@pytest.mark.parametrize(("gate", "copied"), [(-math.inf, 0.0), (math.inf, 1.0)])
def test_the_gate_chooses(output, gate, copied):
    gate_of(output, gate)
    features, weights = torch.zeros(1, SIZE).double(), torch.ones(1, 1).double()
    probs = output.log_probs(features, weights, saying([NEW]).says).exp()[0]
    assert_close(probs[NEW].item(), copied)
    assert_close(probs[:NEW].sum().item(), 1 - copied)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("target", [NEW, UNKNOWN, 4])
def test_a_copy_that_has_no_weight(target, dtype):
    """Loss and gradients stay finite: the weight of the one item that says it is 0."""
    torch.manual_seed(0)
    output = WordOutput(SIZE, VOCABULARY_SIZE, copies=True).to(dtype)
    goals, lengths = torch.tensor([[target]]), torch.tensor([1])
    batch = Batch(goals.clamp(max=NEW - 1), lengths, saying([NEW, 5]), goals)
    features = torch.randn(1, 1, SIZE, dtype=dtype, requires_grad=True)
    weights = torch.tensor([[[0.0, 1.0]]], dtype=dtype, requires_grad=True)
    score = output.score(features, weights, batch)
    score.sum().backward()
    assert score.item() > math.log(SMALLEST) - 3
    assert features.grad.isfinite().all()
    assert weights.grad.isfinite().all()
    assert all(part.grad.isfinite().all() for part in output.parameters())


def test_without_a_source(features, batch):
    """A softmax, and nothing else."""
    torch.manual_seed(0)
    output = WordOutput(SIZE, VOCABULARY_SIZE, copies=False).double()
    text = Batch(batch.words, batch.lengths)
    log_probs = output.log_probs(features.flatten(0, 1), None, None)
    expected = log_probs.gather(-1, text.words.flatten().unsqueeze(-1)).view(text.words.shape)
    assert_close(output.score(features, None, text), expected.masked_fill(~text.active, 0.0))
    assert_close(log_probs.exp().sum(-1), torch.ones(len(log_probs), dtype=torch.double))
