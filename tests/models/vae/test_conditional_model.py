"""The model of sentences from sources is the distribution it claims to be."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch.testing import assert_close

from models.config import Knobs, ObjectiveConfig, RunConfig
from models.data.batches import Batch, Source, collate, collate_sources
from models.data.sources import EncodedSource, SourceVocabulary
from models.data.vocabulary import END, PAD, UNKNOWN, Vocabulary
from models.vae.decoder import LogJoint
from models.vae.objective import build_objective
from models.vae.template_vae import TemplateVAE, build_model
from structdist.estimators import ESTIMATORS
from tests.models.conditional import (
    BAG,
    NEW,
    NUM_KEYS,
    PAIRS,
    SHORT,
    TABLE,
    conditional_batch,
    conditional_model,
    with_items,
)
from tests.models.conftest import CONFIG, VOCABULARY_SIZE
from tests.models.vae.test_template_vae import all_templates


@pytest.fixture
def model():
    return conditional_model()


@pytest.fixture
def batch():
    return conditional_batch()


def draw(model: TemplateVAE, batch: Batch, samples: int = 1) -> torch.Tensor | None:
    """Templates [S, B, T, K], or none for a model without them."""
    if not model.latent:
        return None
    return model.posterior(batch).sample((samples,), generator=torch.Generator().manual_seed(0))


def all_sentences(encoded: EncodedSource) -> Batch:
    """Of two words each, those beyond the vocabulary included; they need not end."""
    words = [END, UNKNOWN, 4, 5, *range(NEW, NEW + len(encoded.new_words))]
    goals = torch.tensor(list(product(words, repeat=2)))
    sources = collate_sources([encoded, BAG])  # padded to the longer one
    source = Source(*(part[:1].expand(len(goals), -1) for part in sources))
    known = goals.masked_fill(goals >= NEW, UNKNOWN)
    return Batch(known, torch.full((len(goals),), 2), source, goals)


@pytest.mark.parametrize("encoded", [TABLE, SHORT, BAG], ids=["table", "short", "bag"])
@pytest.mark.parametrize("latent", [True, False])
def test_probabilities_of_all_sentences_and_templates_sum_to_one(latent, encoded):
    model, batch = conditional_model(latent), all_sentences(encoded)
    if not latent:
        assert_close(model.log_joint(batch).total().exp().sum().item(), 1.0)
        return
    templates = all_templates(2, 2)
    states = templates.unsqueeze(1).expand(-1, len(batch.words), -1, -1)
    assert_close(model.log_joint(batch, states).total().exp().sum().item(), 1.0)


@pytest.mark.parametrize("latent", [True, False])
def test_padding_does_not_matter(latent, batch):
    """Neither that of sentences nor that of sources."""
    model = conditional_model(latent)
    states = draw(model, batch)
    together = model.log_joint(batch, states)
    for n, pair in enumerate(PAIRS):
        own = None if states is None else states[:, n : n + 1, : len(pair)]
        alone = model.log_joint(collate([pair]), own)
        assert_close(together.words[..., n], alone.words[..., 0])
        assert_close(together.states[..., n], alone.states[..., 0])


@pytest.mark.parametrize("order", [(3, 2, 1, 0), (1, 3, 0, 2)])
def test_order_of_the_items_does_not_matter(order, model, batch):
    """A source is a set."""
    states = draw(model, batch)
    other = batch._replace(source=with_items(batch.source, order))
    assert_close(model.log_joint(other, states), model.log_joint(batch, states))


def test_what_the_items_are_matters(model, batch):
    states = draw(model, batch)
    for part in ("keys", "places", "words", "says"):
        numbers = getattr(batch.source, part).masked_fill(batch.source.active, 4)
        other = batch._replace(source=batch.source._replace(**{part: numbers}))
        assert (model.log_joint(other, states).words != model.log_joint(batch, states).words).any()


def test_the_posterior_does_not_see_the_source(model, batch):
    """Nor which words can be copied."""
    expected = model.posterior(batch).marginals
    assert_close(model.posterior(Batch(batch.words, batch.lengths)).marginals, expected)


def test_samples_agree_with_a_loop(model, batch):
    states = draw(model, batch, samples=3)
    together = model.log_joint(batch, states)
    apart = [model.decoder(batch, template, Knobs()) for template in states]
    assert_close(together, LogJoint(*map(torch.stack, zip(*apart, strict=True))))


@torch.no_grad()
def step_by_step(model: TemplateVAE, batch: Batch, states: torch.Tensor | None) -> LogJoint:
    """As a sentence is written: one word after the other, each known only once it is there."""
    decoder, memory = model.decoder, model.decoder.read(batch.source)
    words, told = torch.zeros(2, len(batch.words), dtype=torch.double)
    carry, before = memory.start, None if states is None else torch.zeros_like(states[:, :1])
    for t, inputs in enumerate(batch.inputs().split(1, dim=1)):
        here = None if states is None else states[:, t : t + 1]
        hidden, carry = decoder.advance(inputs, before, carry)
        features, weights = decoder.features(here, hidden, memory)
        log_probs = decoder.output.log_probs(features[:, 0], weights[:, 0], memory.says)
        found = log_probs.gather(1, batch.target[:, t : t + 1])[:, 0]
        words += torch.where(batch.active[:, t], found, 0.0)
        if here is not None:
            told += (here * decoder.state_log_probs(hidden, memory)).sum((1, 2))
        before = here
    return LogJoint(words, told)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("latent", [True, False])
def test_all_steps_at_once_agree_with_one_at_a_time(latent, layers, batch):
    model = conditional_model(latent, num_layers=layers)
    states = draw(model, batch)
    states = None if states is None else states[0]
    assert_close(model.decoder(batch, states, Knobs()), step_by_step(model, batch, states))


@pytest.mark.parametrize("name", ["rnnlm", *ESTIMATORS])
def test_every_parameter_has_a_finite_gradient(name, batch):
    """Of words that only the source has, and of one that nobody knows."""
    objective = build_objective(ObjectiveConfig(name))
    model = conditional_model(objective.latent, source_dropout=0.5).train()
    loss = objective.loss(model, batch, Knobs(word_dropout=0.5))
    loss.backward()
    assert loss.isfinite()
    for parameter, values in model.named_parameters():
        assert values.grad is not None, parameter
        assert values.grad.isfinite().all(), parameter


def test_padding_is_not_embedded(model, batch):
    model.log_joint(batch, draw(model, batch)).total().sum().backward()
    encoder = model.decoder.source_encoder
    for embedding in (model.decoder.embedding, encoder.keys, encoder.places):
        assert embedding.weight.grad[PAD].count_nonzero() == 0


@pytest.mark.parametrize("rate", [0.0, 0.9])
def test_nothing_is_hidden_in_evaluation(rate, batch):
    model = conditional_model(source_dropout=rate)
    states = draw(model, batch)
    expected = conditional_model().log_joint(batch, states)
    assert_close(model.log_joint(batch, states), expected, atol=0, rtol=0)


def test_quoted_words_are_hidden_in_training(batch):
    """From what the decoder reads, not from what it is to say."""
    model = conditional_model(dropout=0.0)
    states = draw(model, batch)
    model.decoder.source_encoder.hide_rate = 1.0  # all of them
    quoted = (batch.source.says.unsqueeze(-1) == batch.target.unsqueeze(1)).any(-1)
    hidden = batch.hiding(quoted & batch.source.active)
    expected = model.log_joint(hidden, states)
    assert_close(model.train().log_joint(batch, states), expected)
    assert (expected.words != model.eval().log_joint(batch, states).words).any()


def test_words_without_their_context(batch):
    """With `context_dropout` 1, what stands before them plays no part."""
    model = conditional_model(dropout=0.0, source_dropout=0.0).train()
    states = draw(model, batch)
    other = batch._replace(words=torch.full_like(batch.words, 5))
    for rate, same in ((1.0, True), (0.0, False)):
        found = [
            model.log_joint(b, states, knobs=Knobs(context_dropout=rate)).words
            for b in (batch, other)
        ]
        assert torch.allclose(*found) is same


def test_a_source_is_needed(model, batch):
    with pytest.raises(ValueError, match="needs them in its batches"):
        model.log_joint(Batch(batch.words, batch.lengths), draw(model, batch))


def test_a_model_of_sentences_alone_reads_none(batch):
    text = TemplateVAE(CONFIG, VOCABULARY_SIZE)
    with pytest.raises(ValueError, match="does not read sources"):
        text.decoder.read(batch.source)


@pytest.mark.parametrize(
    ("task", "reads"), [("text", False), ("data2text", True), ("paraphrase", True)]
)
def test_the_task_decides_what_is_built(task, reads):
    vocabulary = SourceVocabulary(Vocabulary(["a", "b"]), Vocabulary(["name"]))
    encoder = build_model(RunConfig(model=CONFIG, task=task), vocabulary).decoder.source_encoder
    assert (encoder is not None) is reads
    if encoder is not None:
        assert encoder.keys.num_embeddings == len(vocabulary.keys) == NUM_KEYS - 1
