"""Counts by hand for three sentences, and by plain loops for random ones."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.templates import analysis
from models.templates.analysis import StateNGram, WordShare, analyse

SENTENCES = [["the", "pub", "is", "cheap"], ["the", "big", "inn", "is", "cheap"], ["cheap"]]
TEMPLATES = [[1, 1, 2, 3], [1, 1, 1, 2, 3], [3]]

pairs = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcd")), max_size=9)
corpora = st.lists(pairs, max_size=8)


def split(corpus: list[list[tuple[int, str]]]) -> tuple[list[list[int]], list[list[str]]]:
    return [[s for s, _ in c] for c in corpus], [[w for _, w in c] for c in corpus]


def plain_ngrams(corpus: list[list[tuple[int, str]]], size: int) -> Counter[tuple]:
    """How often each n-gram of runs meets each text."""
    found: Counter[tuple] = Counter()
    for sentence in corpus:
        runs = [(s, [w for _, w in run]) for s, run in groupby(sentence, key=lambda pair: pair[0])]
        for start in range(len(runs) - size + 1):
            window = runs[start : start + size]
            text = " ".join(word for _, words in window for word in words)
            found[tuple(state for state, _ in window), text] += 1
    return found


def test_ngrams_by_hand():
    assert analyse(TEMPLATES, SENTENCES).ngrams == (
        StateNGram((3,), 3, (("cheap", 3),)),
        StateNGram((1,), 2, (("the big inn", 1), ("the pub", 1))),
        StateNGram((2,), 2, (("is", 2),)),
        StateNGram((1, 2), 2, (("the big inn is", 1), ("the pub is", 1))),
        StateNGram((2, 3), 2, (("is cheap", 2),)),
        StateNGram((1, 2, 3), 2, (("the big inn is cheap", 1), ("the pub is cheap", 1))),
    )


def test_states_by_hand():
    first, second, third = analyse(TEMPLATES, SENTENCES).states
    assert [s.state for s in (first, second, third)] == [1, 2, 3]
    assert [s.share for s in (first, second, third)] == [5 / 10, 2 / 10, 3 / 10]
    assert second.words == (WordShare("is", 1.0, math.log(10 / 2)),)
    assert [(w.word, w.share) for w in first.words] == [
        ("the", 2 / 5),
        ("big", 1 / 5),
        ("inn", 1 / 5),
        ("pub", 1 / 5),
    ]
    assert [w.pmi for w in first.words] == pytest.approx([math.log(2)] * 4)


def test_words_that_are_frequent_everywhere_or_rare_come_late():
    """In state 0, `a` has the largest share and `b` the largest PMI."""
    templates, words = [[0] * 10 + [1] * 10], [[*"aaaaaccccb", *"aaaaaacddd"]]
    found = analyse(templates, words).states[0].words
    assert [entry.word for entry in found] == ["c", "b", "a"]
    assert found[1].pmi > found[0].pmi > 0 > found[2].pmi


@given(corpora, st.integers(1, 4))
def test_ngrams_agree_with_plain_loops(corpus, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "SIZES", [size])
        patch.setattr(analysis, "TOP_NGRAMS", None)
        patch.setattr(analysis, "TOP_SEGMENTS", None)
        found = analyse(*split(corpus))
    counted = {(n.states, text): count for n in found.ngrams for text, count in n.segments}
    assert counted == plain_ngrams(corpus, size)
    assert all(n.count == sum(count for _, count in n.segments) for n in found.ngrams)
    assert [(-n.count, n.states) for n in found.ngrams] == sorted(
        (-n.count, n.states) for n in found.ngrams
    )


@given(corpora)
def test_state_words_agree_with_the_definition(corpus):
    words = [pair for sentence in corpus for pair in sentence]
    found = analyse(*split(corpus)).states
    assert [entry.state for entry in found] == sorted({state for state, _ in words})
    for entry in found:
        mine = [word for state, word in words if state == entry.state]
        assert entry.share == len(mine) / len(words)
        for found_word in entry.words:
            everywhere = sum(w == found_word.word for _, w in words) / len(words)
            share = mine.count(found_word.word) / len(mine)
            assert found_word.share == share
            assert found_word.pmi == pytest.approx(math.log(share / everywhere), abs=1e-12)


@given(corpora, st.randoms(use_true_random=False))
def test_the_order_of_sentences_does_not_matter(corpus, rng):
    shuffled = rng.sample(corpus, len(corpus))
    assert analyse(*split(shuffled)) == analyse(*split(corpus))


def test_tops_are_of_each_size(monkeypatch):
    corpus = [[(state, word) for state, word in zip([0, 1, 2, 0, 3], "abcde", strict=True)]] * 2
    for name, number in {"TOP_NGRAMS": 2, "TOP_SEGMENTS": 1, "TOP_WORDS": 1}.items():
        monkeypatch.setattr(analysis, name, number)
    found = analyse(*split(corpus))
    assert [n.states for n in found.ngrams[:4]] == [(0,), (1,), (0, 1), (0, 3)]
    assert found.ngrams[0].segments == (("a", 2),)
    assert [len(entry.words) for entry in found.states] == [1, 1, 1, 1]


def test_templates_and_sentences_are_counted():
    found = analyse([[1, 1], [1], [1, 1], []], [["a", "b"], ["a"], ["c", "d"], []])
    assert (found.num_sentences, found.num_templates) == (4, 3)


def test_json_has_plain_types():
    written = json.loads(json.dumps(analyse(TEMPLATES, SENTENCES).as_json()))
    assert written["ngrams"][4] == {
        "states": [2, 3],
        "count": 2,
        "segments": [{"text": "is cheap", "count": 2}],
    }
    assert written["states"][2] == {
        "state": 3,
        "share": 0.3,
        "words": [{"word": "cheap", "share": 1.0, "pmi": pytest.approx(math.log(10 / 3))}],
    }


def test_a_state_for_each_word():
    with pytest.raises(ValueError, match="sentence 1 has 2 states but 1 words"):
        analyse([[1], [1, 2]], [["a"], ["b"]])
