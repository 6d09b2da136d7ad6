"""Sentences, and what they are written from, by task."""

from __future__ import annotations

import pytest

from models.data.batches import EncodedPair
from models.data.corpus import Corpus, Example
from models.data.sources import SourceVocabulary
from models.data.tasks import corpus_vocabulary, encode_pair, encode_task, pairs, paraphrases
from models.data.vocabulary import END, UNKNOWN, Vocabulary
from models.errors import SettingError
from models.restaurants.corpus import synthetic_corpus

VOCABULARY = SourceVocabulary(Vocabulary(["a", "dog", "cat", "runs"]), Vocabulary(["pet"]))


def caption(text: str, group: str = "") -> Example:
    return Example(tuple(text.split()), group=group)


CAPTIONS = [
    caption("a dog runs", "1"),
    caption("a cat", "2"),
    caption("the dog", "1"),
    caption("alone", "3"),
    caption("cats", "2"),
    caption("running", "1"),
]


def texts(found: list[tuple[Example, Example]]) -> list[tuple[str, str]]:
    return [(" ".join(source.words), " ".join(target.words)) for source, target in found]


def test_paraphrases_go_round_their_group():
    """Each is a source once and a target once; who is alone is neither."""
    assert texts(paraphrases(CAPTIONS)) == [
        ("a dog runs", "the dog"),
        ("the dog", "running"),
        ("running", "a dog runs"),
        ("a cat", "cats"),
        ("cats", "a cat"),
    ]


def test_sentences_of_no_group_are_about_different_things():
    assert paraphrases([caption("a dog"), caption("a cat")]) == []


def test_sentences_alone():
    found = encode_task("text", [caption("a dog"), caption("the cat")], VOCABULARY)
    assert found == [[4, 5, END], [UNKNOWN, 6, END]]


def test_a_table_and_its_sentence():
    example = Example(("a", "dog", "runs"), table=(("pet", "Dog"),))
    [(target, items)] = pairs("data2text", [example], VOCABULARY)
    assert target is example
    assert [(item.key, item.says) for item in items] == [("pet", "dog")]


def test_a_caption_is_written_from_another_of_its_group():
    found = pairs("paraphrase", CAPTIONS[:4], VOCABULARY)
    assert [" ".join(target.words) for target, _ in found] == ["the dog", "a dog runs"]
    assert [[item.says for item in items] for _, items in found] == [["dog", "runs"], ["dog"]]


def test_new_words_are_goals_only_where_the_source_has_them():
    """To the decoder's input they are all unknown, and the end mark is always the last."""
    examples = [caption("zebra dog", "1"), caption("a zebra and lion", "1")]
    first, second = encode_task("paraphrase", examples, VOCABULARY)
    assert isinstance(first, EncodedPair)
    assert first.words == [4, UNKNOWN, UNKNOWN, UNKNOWN, END]
    assert first.goals == [4, len(VOCABULARY.words), UNKNOWN, UNKNOWN, END]
    assert first.source.says == [len(VOCABULARY.words), 5]
    assert (second.words, second.goals) == ([UNKNOWN, 5, END], [len(VOCABULARY.words), 5, END])
    assert len(first) == 5


def test_goals_are_the_words_where_none_is_new():
    for example in synthetic_corpus(20, 1, 1).splits["train"]:
        vocabulary = SourceVocabulary(Vocabulary.of([example.words]), Vocabulary(["name"]))
        [(target, items)] = pairs("data2text", [example], vocabulary)
        encoded = encode_pair(target, items, vocabulary)
        assert encoded.goals == encoded.words == vocabulary.words.encode(example.words)


def test_examples_without_a_source_are_passed_over():
    table = (("pet", "dog"),)
    examples = [caption("a dog"), Example(("a", "dog"), table=table), Example(("cat",))]
    assert [target for target, _ in pairs("data2text", examples, VOCABULARY)] == [examples[1]]
    captions = [caption(".", "1"), caption("a dog", "1")]
    assert [target for target, _ in pairs("paraphrase", captions, VOCABULARY)] == captions[:1]


@pytest.mark.parametrize(
    ("task", "lacking"),
    [("data2text", "tables"), ("paraphrase", "several sentences about one thing")],
)
def test_a_corpus_that_does_not_fit_the_task(task, lacking):
    with pytest.raises(SettingError, match=f"{task} learns from {lacking}, and the corpus has"):
        encode_task(task, [caption("a dog"), caption("a cat"), caption("alone", "3")], VOCABULARY)


def test_the_vocabulary_of_a_corpus():
    """Words and keys of the training split."""
    train = [Example(("a", "dog"), table=(("pet", "Dog"), ("size", "small")))]
    dev = [Example(("cat",), table=(("colour", "red"),))]
    found = corpus_vocabulary(Corpus("some", {"train": train, "dev": dev, "test": []}))
    assert found.words.real_words == ["a", "dog"]
    assert found.keys.real_words == ["pet", "size"]


def test_without_pairs_a_sentence_is_written_from_its_own_words():
    example = caption("a dog on a sofa")
    [(target, items)] = pairs("paraphrase-unpaired", [example], VOCABULARY)
    assert target == example
    assert [item.says for item in items] == ["dog", "sofa"]
