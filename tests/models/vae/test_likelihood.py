"""Scores against exact numbers: enumeration where the model is small, definitions elsewhere.

Sampled numbers have a fixed seed and stay within 6 standard errors.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from models.data.batches import Batch
from models.vae import likelihood as evaluation
from models.vae.likelihood import Estimates, Scores, Tally, evaluate, importance_estimates
from models.vae.template_vae import TemplateVAE
from tests.models.conftest import CONFIG, VOCABULARY_SIZE
from tests.models.vae.test_template_vae import all_templates, exact_log_likelihood

SAMPLES = 4000


@pytest.fixture(autouse=True)
def sharp_posterior(model):
    """So that sentences and templates differ."""
    with torch.no_grad():
        model.inference_network.scores.weight *= 5


@pytest.fixture
def language_model():
    torch.manual_seed(0)
    return TemplateVAE(CONFIG, VOCABULARY_SIZE, latent=False).double().eval()


@pytest.fixture
def estimates(model, batch, monkeypatch) -> Estimates:
    monkeypatch.setattr(evaluation, "CHUNK", 1000)
    torch.manual_seed(0)
    return importance_estimates(model, batch, model.posterior(batch), SAMPLES)


@torch.no_grad()
def exact_moments(model: TemplateVAE, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean of log p(x, z) under q and its standard deviation, for one sentence without padding."""
    templates = all_templates(batch.words.shape[1], batch.words.shape[1]).unsqueeze(1)
    log_p = model.log_joint(batch, templates).total()[:, 0]
    probs = model.posterior(batch).log_prob(templates)[:, 0].exp()
    mean = (probs * log_p).sum()
    return mean, (probs * (log_p - mean) ** 2).sum().sqrt()


@torch.no_grad()
def spread_of_weights(model: TemplateVAE, batch: Batch) -> torch.Tensor:
    """Standard deviation of p(x, z) / q(z | x), relative to p(x)."""
    templates = all_templates(batch.words.shape[1], batch.words.shape[1]).unsqueeze(1)
    log_p = model.log_joint(batch, templates).total()[:, 0]
    log_q = model.posterior(batch).log_prob(templates)[:, 0]
    second_moment = (2 * log_p - log_q).logsumexp(0) - 2 * log_p.logsumexp(0)
    return (second_moment.exp() - 1).sqrt()


def alone(batch: Batch, n: int) -> Batch:
    length = batch.lengths[n : n + 1]
    return Batch(batch.words[n : n + 1, : int(length)], length)


def test_importance_sampling_finds_the_likelihood(model, batch, estimates):
    exact = exact_log_likelihood(model, batch)
    for n in range(len(exact)):
        error = spread_of_weights(model, alone(batch, n)) / SAMPLES**0.5
        assert (estimates.log_likelihood[n] - exact[n]).abs() < 6 * error


def test_more_samples_come_closer(model, batch, estimates):
    torch.manual_seed(0)
    exact = exact_log_likelihood(model, batch)
    few = [importance_estimates(model, batch, model.posterior(batch), 4) for _ in range(50)]
    errors = [(found.log_likelihood - exact).square().mean() for found in few]
    assert (estimates.log_likelihood - exact).square().mean() < torch.stack(errors).mean() / 10


def test_bound(model, batch, estimates):
    for n in range(len(batch.lengths)):
        mean, deviation = exact_moments(model, alone(batch, n))
        entropy = model.posterior(alone(batch, n)).entropy()[0]
        assert_close(estimates.entropy[n], entropy)
        error = deviation / SAMPLES**0.5
        assert (estimates.elbo[n] - (mean + entropy)).abs() < 6 * error
        assert mean + entropy < exact_log_likelihood(model, alone(batch, n))[0]


def test_bound_lies_above_the_likelihood(model, batch):
    torch.manual_seed(0)
    scores = evaluate(model, [batch], 1000)
    assert scores.neg_elbo > scores.nll
    assert scores.neg_elbo == pytest.approx(scores.word_nats + scores.state_nats - scores.entropy)
    assert scores.bound == scores.neg_elbo


def test_one_sample(model, batch):
    """The likelihood's estimate is log p(x, z) - log q(z | x) of that sample."""
    posterior = model.posterior(batch)
    torch.manual_seed(0)
    found = importance_estimates(model, batch, posterior, 1)
    torch.manual_seed(0)
    states = posterior.sample((1,))
    log_p = model.log_joint(batch, states).total()[0]
    assert_close(found.log_likelihood, log_p - posterior.log_prob(states)[0])
    assert_close(found.elbo, log_p + posterior.entropy())
    assert not found.elbo.requires_grad


@pytest.mark.parametrize(("samples", "sizes"), [(3, [3]), (10, [10]), (25, [10, 10, 5])])
def test_memory_does_not_grow_with_the_samples(model, batch, monkeypatch, samples, sizes):
    scored, log_joint = [], model.log_joint

    def recording(batch, states):
        scored.append(len(states))
        return log_joint(batch, states)

    monkeypatch.setattr(model, "log_joint", recording)
    importance_estimates(model, batch, model.posterior(batch), samples)
    assert scored == sizes


def test_chunks_make_one_estimate(model, batch, monkeypatch):
    """The same samples in chunks of one and all at once, told apart by nothing."""
    posterior = model.posterior(batch)
    drawn = posterior.sample((6,))
    found = []
    for chunk in (1, 4, 6):
        rest = iter(drawn.split(chunk))
        monkeypatch.setattr(evaluation, "CHUNK", chunk)
        monkeypatch.setattr(posterior, "sample", lambda _, rest=rest: next(rest))
        found.append(importance_estimates(model, batch, posterior, 6))
    assert_close(found[0].log_likelihood, found[2].log_likelihood)
    assert_close(found[1].log_likelihood, found[2].log_likelihood)
    assert_close(found[1].elbo, found[2].elbo)


def test_a_language_model_is_exact(language_model, batch):
    log_likelihood = language_model.log_joint(batch).total()
    scores = evaluate(language_model, [batch], num_samples=1)
    assert scores.nll == pytest.approx(-log_likelihood.mean().item())
    assert scores.ppl == pytest.approx(math.exp(-log_likelihood.sum().item() / 9))
    assert scores.bound == scores.nll
    assert scores.neg_elbo is scores.entropy is scores.states_in_use is scores.collapse is None


def test_order_and_batches_do_not_matter(language_model, batch):
    together = evaluate(language_model, [batch])
    apart = evaluate(language_model, [alone(batch, n) for n in (2, 0, 1)])
    assert (apart.nll, apart.ppl) == pytest.approx((together.nll, together.ppl))


def test_batches_do_not_matter_to_exact_parts(model, batch):
    together = evaluate(model, [batch], 1)
    apart = evaluate(model, [alone(batch, n) for n in (2, 0, 1)], 1)
    for name in ("entropy", "entropy_share", "position_entropy_share", "states_in_use"):
        assert getattr(apart, name) == pytest.approx(getattr(together, name)), name


def test_perplexity_is_per_word_with_end_marks(model, batch):
    scores = evaluate(model, [batch, batch], 5)
    assert scores.ppl == pytest.approx(math.exp(scores.nll * 6 / 18))


def test_entropy_and_its_share(model, batch):
    scores = evaluate(model, [batch], 1)
    entropy = model.posterior(batch).entropy()
    assert scores.entropy == pytest.approx(entropy.mean().item())
    assert scores.entropy_share == pytest.approx(entropy.sum().item() / (9 * math.log(3)))


def tally(*counts: list[list[int]]) -> Scores:
    """Scores of batches with such counts of states at each position."""
    found = Tally()
    found.states = [torch.tensor(one) for one in counts]
    found.words = int(sum(one.sum() for one in found.states))
    found.sentences = found.largest_entropy = 1
    return found.scores()


def test_states_in_use():
    """Those with a thousandth of the words."""
    assert tally([[1997, 2, 1]]).states_in_use == 2
    assert tally([[1000, 2, 0], [998, 0, 0]], [[0, 0, 1000]]).states_in_use == 2
    assert tally([[5, 0, 0]]).states_in_use == 1


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ([[2, 2]], 1),
        ([[4, 0]], 0),
        ([[4, 0], [0, 4]], 0),  # another state at each position, but always that one
        ([[2, 2], [4, 0]], 1 / 2),
        ([[2, 2], [1, 0]], 4 / 5),  # weighted by the words at the position
        ([[2, 2], [0, 0]], 1),  # no word there
    ],
)
def test_position_entropy_share(counts, share):
    assert tally(counts).position_entropy_share == pytest.approx(share)


def test_counts_of_batches_add_up():
    """Of longer and shorter ones alike."""
    together = tally([[1, 3], [2, 0]])
    assert tally([[1, 0]], [[0, 3], [2, 0]]) == together
    assert tally([[0, 3], [2, 0]], [[1, 0]]) == together


def test_no_sentences_are_refused(model):
    with pytest.raises(ValueError, match="no sentences"):
        evaluate(model, [])
