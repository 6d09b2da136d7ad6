"""Lessons for the inference network: who learns from whom, and which model is chosen when."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from models.config import ModelConfig
from models.data.batches import Batch
from models.vae import phrase_model as module
from models.vae.phrase_model import RIVALS, PhraseTeacher
from structdist import SemiMarkovCRF
from tests.models.conftest import VOCABULARY_SIZE

CONFIG = ModelConfig(num_states=3, hidden_size=8, posterior="semi-markov", max_phrase=2)
TRIAL = 5


@pytest.fixture
def teacher(monkeypatch) -> PhraseTeacher:
    monkeypatch.setattr(module, "TRIAL", TRIAL)
    torch.manual_seed(0)
    return PhraseTeacher(CONFIG, VOCABULARY_SIZE, None).double()


def pupil(batch: Batch) -> tuple[Tensor, SemiMarkovCRF]:
    """Scores, and a posterior made of them."""
    scores = torch.zeros(*batch.words.shape, 3, dtype=torch.double, requires_grad=True)
    durations = torch.zeros(2, 3, dtype=torch.double)
    return scores, SemiMarkovCRF(scores, torch.zeros(3, 3).double(), durations, batch.lengths)


def means(teacher: PhraseTeacher, batch: Batch) -> Tensor:
    return torch.stack([rival(batch).log_partition.mean() for rival in teacher.rivals])


def gradient_norms(teacher: PhraseTeacher) -> list[float]:
    return [
        sum(float(p.grad.norm()) for p in rival.parameters() if p.grad is not None)
        for rival in teacher.rivals
    ]


def test_all_learn_by_their_likelihood_and_the_pupil_from_the_best(batch, teacher):
    best = int(means(teacher, batch).argmax())
    teacher.lesson(batch, pupil(batch)[1])  # who is best is known after a step
    scores, posterior = pupil(batch)
    chosen = teacher.rivals[best](batch)
    losses = teacher.lesson(batch, posterior)
    every = torch.stack([rival(batch).log_partition for rival in teacher.rivals]).sum(0)
    assert_close(losses, chosen.cross_entropy(posterior) - every)
    parameters = list(teacher.parameters())
    found = torch.autograd.grad(losses.sum(), [scores, *parameters], allow_unused=True)
    alone = torch.autograd.grad(-every.sum(), parameters, allow_unused=True)
    assert_close(found[0], posterior.token_marginals - chosen.token_marginals)
    for one, two in zip(found[1:], alone, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            assert_close(one, two)


def test_after_the_trial_only_the_best_learns(batch, teacher):
    best = int(means(teacher, batch).argmax())
    for _ in range(TRIAL):
        teacher.lesson(batch, pupil(batch)[1])
    teacher.lesson(batch, pupil(batch)[1]).sum().backward()
    assert [norm > 0 for norm in gradient_norms(teacher)] == [i == best for i in range(RIVALS)]


def test_the_choice_goes_by_recent_likelihoods_and_is_kept(batch, teacher, monkeypatch):
    monkeypatch.setattr(module, "RECENT", 0.9)
    first = int(means(teacher, batch).argmax())
    teacher.lesson(batch, pupil(batch)[1])
    assert int(teacher.log_likelihoods.argmax()) == first
    assert_close(teacher.log_likelihoods, means(teacher, batch))
    later = (first + 1) % RIVALS
    optimizer = torch.optim.Adam(teacher.rivals[later].parameters(), lr=0.3)
    for _ in range(TRIAL - 1):  # it alone gets better
        optimizer.zero_grad()
        teacher.lesson(batch, pupil(batch)[1]).sum().backward()
        optimizer.step()
    assert int(teacher.log_likelihoods.argmax()) == later
    kept = teacher.log_likelihoods.clone()
    teacher.lesson(batch, pupil(batch)[1])
    assert torch.equal(teacher.log_likelihoods, kept)


def test_looking_is_no_step(batch, teacher):
    teacher.eval()
    teacher.lesson(batch, pupil(batch)[1])
    assert teacher.steps == 0
    assert teacher.log_likelihoods.eq(0).all()
