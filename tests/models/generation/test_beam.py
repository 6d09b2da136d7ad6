"""The beam agrees with the enumeration of all sentences, and with a beam written plainly."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
import torch

from models.data.batches import collate_sources
from models.data.vocabulary import END
from models.generation.search import Decoding, write
from tests.models.generation.enumeration import (
    BEAM,
    GREEDY,
    NEW_WORD,
    PLAIN,
    SOURCES,
    TEMPLATES,
    WITH_NEED,
    WITH_NEW_WORD,
    Possible,
    continuations,
    own_scores,
    possible_sentences,
    shown,
    texts,
    tiny_model,
    with_bias,
    without_end_state,
)

MAX_WORDS = 3
ALL = 400  # more than there are sentences of so many words

seeds = pytest.mark.parametrize("seed", range(3))


@seeds
@pytest.mark.parametrize("templates", [None, TEMPLATES], ids=["free", "templates"])
def test_a_beam_of_one_is_greedy(seed, templates):
    model = tiny_model(seed)
    assert texts(model, replace(BEAM, beam=1), templates) == texts(model, GREEDY, templates)


@seeds
@pytest.mark.parametrize("source", [PLAIN, WITH_NEW_WORD], ids=["plain", "new word"])
def test_a_beam_of_all_finds_the_best(seed, source):
    model = tiny_model(seed)
    ended = [one for one in possible_sentences(model, source, MAX_WORDS) if one.ended]
    for penalty in (0.0, 0.7, 1.0, 2.0):
        ranks = {one.log_prob / len(one.words) ** penalty: one for one in ended}
        decoding = Decoding("beam", ALL, penalty, max_words=MAX_WORDS)
        (text,) = texts(model, decoding, None, [source])
        assert shown(text) == without_end_state(ranks[max(ranks)])
        assert text.log_prob == pytest.approx(ranks[max(ranks)].log_prob)


def plain_beam(model, source, decoding) -> list[Possible]:
    """One sentence at a time; for sources that need no word, and beams not narrower than states.

    All that have ended, the best first, or the best beginning.
    """

    def rank(one: Possible) -> float:
        return one.log_prob / len(one.words) ** decoding.length_penalty

    beam = [Possible()]
    while begun := [one for one in beam if not one.ended and one.length < decoding.max_words]:
        ended = [one for one in beam if one.ended]
        kept = sorted(ended, key=rank)[-1:]  # the best, in any case
        candidates = [*ended, *chain.from_iterable(continuations(model, source, begun))]
        candidates.sort(key=lambda one: (one in kept, rank(one)), reverse=True)
        beam = candidates[: decoding.beam]
    beam.sort(key=rank, reverse=True)
    return [one for one in beam if one.ended] or beam[:1]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("source", [PLAIN, WITH_NEW_WORD], ids=["plain", "new word"])
def test_a_narrow_beam_keeps_what_a_plain_one_keeps(seed, source):
    model = tiny_model(seed)
    for penalty in (0.0, 1.0):
        decoding = replace(BEAM, length_penalty=penalty)
        (found,) = write(model, collate_sources([source]), decoding)
        for text, expected in zip(found, plain_beam(model, source, decoding), strict=True):
            assert shown(text) == without_end_state(expected)
            assert text.log_prob == pytest.approx(expected.log_prob)


@seeds
def test_a_beam_prefers_those_that_say_what_is_needed(seed):
    """Even where that is unlikely."""
    model = tiny_model(seed)
    with torch.no_grad():
        model.decoder.output.gate.bias -= 10
    possible = possible_sentences(model, WITH_NEED, MAX_WORDS)
    saying = [one for one in possible if one.ended and NEW_WORD in one.words]
    decoding = Decoding("beam", ALL, 0.0, max_words=MAX_WORDS)
    with_need, without = texts(model, decoding, None, [WITH_NEED, WITH_NEW_WORD])
    assert shown(with_need) == without_end_state(max(saying, key=lambda one: one.log_prob))
    assert NEW_WORD not in without.words


@pytest.mark.parametrize("seed", range(8))
def test_what_has_ended_is_not_lost_to_what_is_cut(seed):
    """Whatever beats it in the beam meanwhile."""
    model, answers = tiny_model(seed), []
    for max_words in (3, 10, 20):
        answers.append([text.ended for text in texts(model, replace(BEAM, max_words=max_words))])
    assert all(sorted(of_source) == list(of_source) for of_source in zip(*answers, strict=True))


@pytest.mark.parametrize("templates", [[[0], [1], [0]], [[0, 1], [1], [0, 0, 0]]])
def test_a_beam_wider_than_all_there_is(templates):
    """What has no chance fills the beam, but never comes out."""
    model = tiny_model()
    for source, text in zip(SOURCES, texts(model, Decoding("beam", 50), templates), strict=True):
        assert text.ended
        assert text.log_prob == pytest.approx(max(own_scores(model, source, text)))
        assert set(text.words) <= {4, 5, *source.says}


def test_of_cut_sentences_the_likeliest_is_written():
    model = with_bias(END, -2000.0)  # its end has no chance at all
    cut = [one for one in possible_sentences(model, PLAIN, 2) if not one.ended]
    (text,) = texts(model, Decoding("beam", ALL, max_words=2), None, [PLAIN])
    assert shown(text) == without_end_state(max(cut, key=lambda one: one.log_prob))
