"""The model is the distribution it claims to be."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.testing import assert_close

from models.config import Knobs
from models.data.batches import Batch
from models.data.vocabulary import PAD, START, UNKNOWN
from models.vae.template_vae import TemplateVAE
from structdist import LinearChainCRF
from tests.models.conftest import CONFIG, VOCABULARY_SIZE


def all_templates(length: int, num_steps: int) -> torch.Tensor:
    """[K^n, T, K], zeros beyond the length."""
    shape = (num_steps, CONFIG.num_states)
    chain = LinearChainCRF(torch.zeros(shape), torch.zeros(3, 3), torch.tensor(length))
    return chain.enumerate_support().double()


def exact_log_likelihood(model: TemplateVAE, batch: Batch) -> torch.Tensor:
    """[B], by enumeration of all templates."""
    found = []
    for words, length in zip(batch.words, batch.lengths, strict=True):
        templates = all_templates(int(length), len(words))
        one = Batch(words[None], length[None]).repeat(len(templates))
        found.append(model.decoder(one, templates, Knobs()).total().logsumexp(0))
    return torch.stack(found)


@pytest.mark.parametrize("word_layer", [False, True])
def test_probabilities_of_all_sentences_and_templates_sum_to_one(word_layer):
    torch.manual_seed(0)
    config = replace(CONFIG, word_layer=word_layer)
    model = TemplateVAE(config, VOCABULARY_SIZE).double().eval()
    words = [w for w in range(VOCABULARY_SIZE) if w not in (PAD, START)]
    sentences = torch.tensor(list(product(words, repeat=2)))
    batch = Batch(sentences, torch.full((len(sentences),), 2))
    assert_close(exact_log_likelihood(model, batch).exp().sum().item(), 1.0)


@pytest.mark.parametrize("word_layer", [False, True])
def test_what_a_state_does_depends_on_the_context_with_a_word_layer(word_layer):
    """Without it, a state shifts the scores of all words alike whatever came before."""
    torch.manual_seed(0)
    config = replace(CONFIG, word_layer=word_layer)
    decoder = TemplateVAE(config, VOCABULARY_SIZE).double().eval().decoder
    contexts = torch.randn(2, 1, config.hidden_size, dtype=torch.double)
    states = torch.eye(config.num_states, dtype=torch.double)[:2, None]
    words = VOCABULARY_SIZE - 2, VOCABULARY_SIZE - 1
    odds = []
    for context in contexts:
        features, _ = decoder.features(states, context.expand(2, 1, -1), None)
        scores = decoder.output.log_probs(features[:, 0], None, None)[:, words]
        odds.append((scores[0] - scores[1]).diff())
    assert odds[0].isclose(odds[1]).item() != word_layer


def test_phrases_too_are_a_distribution():
    """Every sentence of three words, and every way to divide it into phrases of at most two."""
    torch.manual_seed(0)
    config = replace(CONFIG, num_states=2, posterior="semi-markov", max_phrase=2)
    model = TemplateVAE(config, VOCABULARY_SIZE).double().eval()
    words = [w for w in range(VOCABULARY_SIZE) if w not in (PAD, START)]
    sentences = torch.tensor(list(product(words, repeat=3)))
    batch = Batch(sentences, torch.full((len(sentences),), 3))
    events = model.posterior(Batch(sentences[:1], batch.lengths[:1])).enumerate_support()
    events = events.expand(-1, len(sentences), -1, -1, -1).double()
    joint = model.log_joint(batch, events)
    assert_close(joint.total().exp().sum().item(), 1.0)
    assert_close(joint.states[:, 0].exp() > 0, torch.ones(len(events), dtype=torch.bool))


def test_words_see_only_what_stands_before_them(batch):
    assert batch.inputs()[0].tolist() == [START, 4, 5, 4]


def test_padding_does_not_matter(model, batch):
    states = model.posterior(batch).sample(generator=torch.Generator().manual_seed(0))
    together = model.log_joint(batch, states[None])
    for n, length in enumerate(batch.lengths.tolist()):
        alone = Batch(batch.words[n : n + 1, :length], batch.lengths[n : n + 1])
        expected = model.log_joint(alone, states[None, n : n + 1, :length])
        assert_close(together.words[0, n], expected.words[0, 0])
        assert_close(together.states[0, n], expected.states[0, 0])
        assert_close(
            model.posterior(batch).marginals[n, :length], model.posterior(alone).marginals[0]
        )


def test_word_dropout_acts_in_training_only(model, batch):
    seen = []
    model.decoder.embedding.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    states = model.posterior(batch).sample()
    for training in (False, True):
        model.decoder.train(training)(batch, states, Knobs(word_dropout=1.0))
    assert torch.equal(seen[0], batch.inputs())
    assert (seen[1] == UNKNOWN).all()


def test_a_language_model_has_no_posterior(batch):
    model = TemplateVAE(CONFIG, VOCABULARY_SIZE, latent=False)
    assert model.log_joint(batch).states.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="no posterior"):
        model.posterior(batch)
