"""BLEU and NIST against numbers computed by hand, and their laws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.metrics.mteval import e2e_bleu, token_bleu, token_nist, tokenise_13a

SENTENCES = st.lists(st.sampled_from("abcde"), min_size=1, max_size=8)
CORPORA = st.lists(
    st.tuples(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=3)), min_size=1, max_size=4
)
LONG = st.lists(st.lists(st.sampled_from("abcde"), min_size=4, max_size=8), min_size=1, max_size=4)


def joined(sentences):
    return [" ".join(words) for words in sentences]


def test_bleu_by_hand():
    assert token_bleu(["a b c d"], [["a b c e"]], order=2).value == pytest.approx(math.sqrt(1 / 2))
    short = token_bleu(["a b"], [["a b c d"]], order=2).value
    assert short == pytest.approx(math.exp(1 - 4 / 2))
    assert token_bleu(["a b c d"], [["a b c e"]]).value == 0.0  # no 4-gram, and no smoothing


def test_bleu_takes_any_number_of_references():
    outputs = ["a b c d", "e f g h"]
    assert token_bleu(outputs, [["x", "a b c d"], ["e f g h"]]).value == pytest.approx(1)


def test_counts_must_agree():
    with pytest.raises(ValueError, match="1 outputs, but 2 lists"):
        token_bleu(["a"], [["a"], ["b"]])


def test_e2e_bleu_ignores_case_and_splits_punctuation():
    same = e2e_bleu(["The Mill, a pub in town."], [["the mill , a PUB in town ."]])
    assert same.value == pytest.approx(1)
    assert "case:lc" in same.signature
    assert "tok:13a" in same.signature


def test_nist_by_hand():
    # Each of three words is worth log2(3); "b" after "a" is certain. Two words of three: half.
    assert token_nist([["a", "b"]], [[["a", "b", "c"]]]) == pytest.approx(math.log2(3) / 2)
    # "a" has 1 bit, "c" has 2: 1.5 a word. "c" after "a" has 1 bit.
    assert token_nist([["a", "c"]], [[["a", "b"], ["a", "c"]]]) == pytest.approx(1.5 + 1)
    # "a" counts once, as in its reference: 1 bit for two words.
    assert token_nist([["a", "a"]], [[["a", "b"]]]) == pytest.approx(1 / 2)


def test_nist_compares_lengths_with_pooled_references():
    outputs, references = [["a"], ["b"] * 3], [[["a"], ["a"] * 3], [["b"] * 4]]
    # A word has 1 bit, "b" after "b" log2(4 / 3), and a third one log2(3 / 2): 2 bits in all.
    penalty = 0.5 ** ((math.log(4 / (8 / 1.5)) / math.log(2 / 3)) ** 2)  # 1.5 references each
    assert token_nist(outputs, references) == pytest.approx(2 * penalty)


def test_nist_of_nothing_in_common():
    assert token_nist([["x"]], [[["a"]]]) == 0.0
    assert token_nist([[]], [[["a"]]]) == 0.0


def test_13a_tokens():
    assert tokenise_13a(["Café, £20-25 (it's 3.5)."]) == [
        ["café", ",", "£20", "-", "25", "(", "it's", "3.5", ")", "."]
    ]


@given(LONG)
def test_bleu_of_a_reference_is_one(sentences):
    texts = joined(sentences)
    assert token_bleu(texts, [["e", text] for text in texts]).value == pytest.approx(1)


@given(CORPORA)
def test_order_of_references_does_not_matter(corpus):
    outputs = [output for output, _ in corpus]
    there = [references for _, references in corpus]
    back = [references[::-1] for references in there]
    assert token_nist(outputs, there) == pytest.approx(token_nist(outputs, back))
    texts, forth, reverse = joined(outputs), list(map(joined, there)), list(map(joined, back))
    bleu, other = token_bleu(texts, forth, 2).value, token_bleu(texts, reverse, 2).value
    assert bleu == pytest.approx(other)


@given(CORPORA)
def test_bounds(corpus):
    outputs, references = zip(*corpus, strict=True)
    words = sum(len(text) for texts in references for text in texts)
    assert 0 <= token_nist(outputs, references) <= 5 * math.log2(words) + 1e-9
    assert 0 <= token_bleu(joined(outputs), list(map(joined, references))).value <= 1 + 1e-9
