"""Words have numbers, and those that are not known share one."""

from __future__ import annotations

import pytest

from models.data.corpus import Corpus, Example
from models.data.vocabulary import END, MARKS, PAD, START, UNKNOWN, Vocabulary

SENTENCES = [["the", "pub", "is", "the", "pub"], ["a", "pub"], []]


def test_marks_come_first_then_the_most_frequent():
    """Equally frequent words stand in alphabetical order."""
    vocabulary = Vocabulary.of(SENTENCES)
    assert vocabulary.words == ("<pad>", "<s>", "</s>", "<unk>", "pub", "the", "a", "is")
    assert [vocabulary.words[mark] for mark in (PAD, START, END, UNKNOWN)] == [*MARKS]
    assert len(vocabulary) == 8


def test_rare_words_are_left_out():
    assert Vocabulary.of(SENTENCES, min_count=2).words[len(MARKS) :] == ("pub", "the")
    assert len(Vocabulary.of(SENTENCES, min_count=9)) == len(MARKS)


def test_order_of_sentences_does_not_matter():
    assert Vocabulary.of(SENTENCES[::-1]).words == Vocabulary.of(SENTENCES).words


def test_round_trip():
    vocabulary = Vocabulary(["pub", "the"])
    assert vocabulary.encode(["the", "pub"]) == [5, 4, END]
    assert vocabulary.words[5:3:-1] == ("the", "pub")


def test_unknown_words():
    vocabulary = Vocabulary(["pub"])
    assert vocabulary.encode(["a", "pub"]) == [UNKNOWN, 4, END]


def test_an_empty_sentence_has_its_end_mark():
    assert Vocabulary([]).encode([]) == [END]


def test_number_of_a_word():
    vocabulary = Vocabulary(["pub", "the"])
    assert [vocabulary.number(word) for word in ("the", "pub", "a")] == [5, 4, UNKNOWN]
    assert "pub" in vocabulary
    assert "a" not in vocabulary


def test_real_words_make_the_same_vocabulary():
    vocabulary = Vocabulary.of(SENTENCES)
    assert vocabulary.real_words == ["pub", "the", "a", "is"]
    assert Vocabulary(vocabulary.real_words) == vocabulary
    assert hash(Vocabulary(vocabulary.real_words)) == hash(vocabulary)


def test_vocabularies_differ_by_order_too():
    assert Vocabulary(["pub", "the"]) != Vocabulary(["the", "pub"])
    assert Vocabulary(["pub"]) != ("<pad>", "<s>", "</s>", "<unk>", "pub")


@pytest.mark.parametrize("words", [["pub", "pub"], ["</s>"]])
def test_a_word_twice_is_refused(words):
    with pytest.raises(ValueError, match="each word once"):
        Vocabulary(words)


def test_a_corpus_knows_the_words_of_its_training_split():
    splits = {"train": [Example(("a", "a", "b"))], "dev": [Example(("c",))], "test": []}
    assert Corpus("some", splits, min_count=2).vocabulary.words[len(MARKS) :] == ("a",)


def test_a_corpus_knows_the_keys_of_its_training_split():
    """All of them: none is too rare."""
    train = [
        Example(("a",), table=(("name", "A"), ("food", "B"))),
        Example((), table=(("name", "C"),)),
    ]
    splits = {"train": train, "dev": [Example((), table=(("area", "D"),))], "test": []}
    assert Corpus("some", splits, min_count=9).keys.real_words == ["name", "food"]
