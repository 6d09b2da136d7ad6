"""A source is a set of items; in training, some of what the sentence quotes is hidden."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from models.data.batches import Source, collate_sources
from models.data.vocabulary import END, PAD, UNKNOWN
from models.vae.source_encoder import LAST_PLACE, Attention, SourceEncoder
from tests.models.conditional import BAG, NEW, NUM_KEYS, PAIRS, SHORT, TABLE, conditional_batch
from tests.models.conftest import CONFIG, VOCABULARY_SIZE

SIZE = CONFIG.hidden_size
DRAWS = 4000


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return SourceEncoder(replace(CONFIG, num_layers=2), NUM_KEYS).double().eval()


@pytest.fixture
def words():
    return torch.randn(VOCABULARY_SIZE, SIZE, generator=torch.Generator().manual_seed(0)).double()


@pytest.fixture
def attention():
    torch.manual_seed(1)
    return Attention(3, SIZE).double()


@pytest.fixture
def source():
    return conditional_batch().source


@pytest.fixture
def query():
    return torch.randn(3, 2, 3, generator=torch.Generator().manual_seed(1)).double()


def hider(rate: float) -> SourceEncoder:
    return SourceEncoder(replace(CONFIG, source_dropout=rate), NUM_KEYS).train()


def test_padding_does_not_matter(encoder, attention, words, source, query):
    memory = encoder(source, words)
    found, weights = attention(query, memory)
    for n, encoded in enumerate((TABLE, SHORT, BAG)):
        size = len(encoded.says)
        alone = encoder(collate_sources([encoded]), words)
        assert_close(memory.items[n, :size], alone.items[0])
        assert_close(
            tuple(part[:, n] for part in memory.start), tuple(p[:, 0] for p in alone.start)
        )
        own_found, own_weights = attention(query[n : n + 1], alone)
        assert_close(found[n], own_found[0])
        assert_close(weights[n, :, :size], own_weights[0])
        assert (weights[n, :, size:] == 0).all()


def test_the_start_does_not_depend_on_the_order(encoder, words, source):
    reversed_source = Source(*(part.flip(1) for part in source))
    found, expected = encoder(reversed_source, words), encoder(source, words)
    assert_close(found.start, expected.start)
    assert_close(found.items.flip(1), expected.items)


def test_the_start_fits_the_decoder(encoder, words, source):
    hidden, cell = encoder(source, words).start
    assert hidden.shape == cell.shape == (2, 3, SIZE)  # layers, sentences
    assert not torch.equal(hidden, cell)


def test_attention_is_a_weighted_mean(encoder, attention, words, source, query):
    memory = encoder(source, words)
    found, weights = attention(query, memory)
    assert_close(weights.sum(-1), torch.ones(3, 2, dtype=torch.double))
    assert (weights >= 0).all()
    assert_close(found, torch.einsum("btn,bnh->bth", weights, memory.items))


def test_places_far_on_count_as_the_last(encoder, words, source):
    last, beyond, before = (
        encoder(source._replace(places=torch.full_like(source.places, place)), words).items
        for place in (LAST_PLACE, LAST_PLACE + 9, LAST_PLACE - 1)
    )
    assert torch.equal(beyond, last)
    assert not torch.equal(before, last)


def test_sentences_can_be_selected(encoder, words, source):
    memory, rows = encoder(source, words), torch.tensor([2, 0, 2])
    again = encoder(Source(*(part[rows] for part in source)), words)
    assert_close(memory.select(rows), again)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision(dtype, words, source, query):
    """Weights, which are probabilities, and the start of an LSTM stay in full precision."""
    torch.manual_seed(0)
    encoder, attention = SourceEncoder(CONFIG, NUM_KEYS), Attention(3, SIZE)
    with torch.autocast("cpu", dtype=dtype):
        memory = encoder(source, words.float())
        _, weights = attention(query.float(), memory)
    assert {part.dtype for part in (*memory.start, weights)} == {torch.float32}
    assert_close(weights.sum(-1), torch.ones(3, 2))


def draw_hidden(encoder: SourceEncoder, encoded: list, sentence: list[int]) -> torch.Tensor:
    """Many draws [DRAWS, N] for one source."""
    torch.manual_seed(0)
    source = Source(*(part.expand(DRAWS, -1) for part in collate_sources(encoded)))
    return encoder.hide(source, torch.tensor([sentence]).expand(DRAWS, -1))


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.9])
def test_share_that_is_hidden(rate):
    """Within six standard errors."""
    hidden = draw_hidden(hider(rate), [TABLE], PAIRS[0].goals)
    spread = (rate * (1 - rate) / DRAWS) ** 0.5
    assert ((hidden.double().mean(0) - rate).abs() <= 6 * spread).all()


def test_words_of_a_value_are_hidden_together():
    """And values apart from each other: all four outcomes are seen."""
    hidden = draw_hidden(hider(0.5), [TABLE], PAIRS[0].goals)
    assert torch.equal(hidden[:, 0], hidden[:, 1])
    assert len(hidden.unique(dim=0)) == 4


def test_words_of_a_bag_are_hidden_each_for_itself():
    hidden = draw_hidden(hider(0.5), [BAG], BAG.says)
    assert len(hidden.unique(dim=0)) == 2 ** len(BAG.says)


def test_sentences_are_hidden_each_for_itself():
    hidden = draw_hidden(hider(0.5), [SHORT], SHORT.says)
    assert hidden.any()
    assert not hidden.all()


@pytest.mark.parametrize(
    ("sentence", "quoted"),
    [
        ([4, NEW, 5, END], [True, True, True]),
        ([5, UNKNOWN, END, PAD], [False, False, True]),
        ([NEW, END], [False, True, False]),
        ([UNKNOWN, END], [False, False, False]),  # unknown words are not the same word
    ],
)
def test_only_what_is_quoted_is_hidden(sentence, quoted):
    encoder = hider(0.5)
    encoder.hide_rate = 1.0
    assert encoder.hide(collate_sources([TABLE]), torch.tensor([sentence])).tolist() == [quoted]


def test_padding_is_never_hidden(source):
    encoder = hider(0.5)
    encoder.hide_rate = 1.0
    hidden = encoder.hide(source, torch.full((3, 2), PAD))
    assert not hidden.any()
