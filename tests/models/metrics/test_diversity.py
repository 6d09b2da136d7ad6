"""Diversity of outputs, and how they follow templates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.metrics.diversity import distinct_n, mutual_bleu
from models.metrics.mteval import token_bleu

SENTENCES = st.lists(
    st.lists(st.sampled_from("abc"), min_size=2, max_size=7), min_size=2, max_size=5
)


def test_distinct_n():
    sentences = [["a", "b", "a"], ["a", "b"]]
    assert distinct_n(sentences, 1) == 2 / 5
    assert distinct_n(sentences, 2) == 2 / 3
    assert distinct_n(sentences, 4) == 0


@given(SENTENCES)
def test_mutual_bleu_is_bleu_with_the_others_as_references(sentences):
    texts = [" ".join(words) for words in sentences]
    others = [texts[:i] + texts[i + 1 :] for i in range(len(texts))]
    for order in (1, 2, 3):
        expected = token_bleu(texts, others, order).value
        assert mutual_bleu(sentences, order) == pytest.approx(expected)


def test_mutual_bleu_of_equals_and_strangers():
    assert mutual_bleu([list("abcd")] * 3) == pytest.approx(1)
    assert mutual_bleu([list("abcd"), list("efgh")]) == 0
    with pytest.raises(ValueError, match="two sentences or more"):
        mutual_bleu([["a"]])
