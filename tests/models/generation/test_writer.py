"""From tables and sentences to texts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from models.data.batches import collate
from models.data.tables import parse_table
from models.data.tasks import encode_pair
from models.data.vocabulary import MARKS
from models.errors import RunError
from models.generation import writer as writer_module
from models.generation.search import Decoding
from models.generation.writer import Sentence, Writer
from tests.models.generation.runs import copying_run, ending_run, small_corpus, untrained_run

SHORT = Decoding(max_words=12)
TABLE = parse_table("name[Zum Roten Ross], food[Klingon], area[riverside]")


def tables(number: int = 10):
    return [example.table for example in small_corpus().splits["test"][:number]]


@pytest.fixture(scope="module")
def writer() -> Writer:
    return Writer(untrained_run(), SHORT)


def own_score(writer: Writer, request, words, states) -> float:
    """The best that the model gives, over the states of the end mark."""
    example = replace(small_corpus().splits["test"][0], words=words)
    batch = collate([encode_pair(example, request.items, writer.trained.vocabulary)])
    num_states = writer.trained.config.model.num_states
    paths = [torch.tensor([[*states, end]]) for end in range(num_states)]
    one_hot = torch.stack([torch.nn.functional.one_hot(p, num_states).double() for p in paths])
    return writer.trained.model.log_joint(batch, one_hot).total().max().item()


def test_the_log_prob_is_that_of_the_words_and_states(writer):
    requests = [writer.from_table(table) for table in [*tables(3), TABLE]]
    templates = [(0, 1, 2), (3,), (1, 1, 2, 0, 3), (2, 1)]
    for request, sentence in zip(requests, writer.write(requests, templates), strict=True):
        expected = own_score(writer, request, sentence.words, sentence.states)
        assert sentence.log_prob == pytest.approx(expected)


def test_states_are_those_of_the_template(writer):
    templates = [(0, 1, 2), (3,), (1, 1, 2, 0, 3)]
    sentences = writer.write([writer.from_table(table) for table in tables(3)], templates)
    assert [sentence.states for sentence in sentences] == templates
    assert [len(sentence.words) for sentence in sentences] == [3, 1, 5]


def test_alternatives_are_what_the_beam_has_found():
    writer = Writer(ending_run(), SHORT)
    requests = [writer.from_table(table) for table in tables(3)]
    found = writer.alternatives(requests)
    assert [own[0] for own in found] == writer.write(requests)
    for own in found:
        assert 1 < len({(sentence.words, sentence.states) for sentence in own}) <= SHORT.beam


def test_states_of_the_models_choice(writer):
    for sentence in writer.write([writer.from_table(table) for table in tables()]):
        assert 1 <= len(sentence.words) == len(sentence.states) <= SHORT.max_words
        assert not set(MARKS) & set(sentence.words)
        assert math.isfinite(sentence.log_prob)


def test_without_templates():
    language_model = Writer(untrained_run(estimator="rnnlm"), SHORT)
    (sentence,) = language_model.write([language_model.from_table(TABLE)])
    assert sentence.words
    assert sentence.states == ()


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_the_size_of_batches_makes_no_difference(monkeypatch, method):
    writer = Writer(untrained_run(), replace(SHORT, method=method))
    requests = [writer.from_table(table) for table in tables()]
    templates = [[n % 4] * (n % 3 + 1) for n in range(len(requests))]
    whole = [*writer.write(requests), *writer.write(requests, templates)]
    monkeypatch.setattr(writer_module, "BATCH", 3)
    monkeypatch.setattr(writer_module, "LARGE_BATCH", 3 * SHORT.beam**2)
    parts = [*writer.write(requests), *writer.write(requests, templates)]
    for one, other in zip(whole, parts, strict=True):
        assert one[:3] == other[:3]
        assert one.log_prob == pytest.approx(other.log_prob)


def test_a_beam_so_wide_that_sources_come_one_by_one():
    writer = Writer(untrained_run(), Decoding(beam=50, max_words=2))
    assert len(writer.write([writer.from_table(table) for table in tables(2)])) == 2


def test_nothing_to_write(writer):
    assert writer.write([]) == []
    assert writer.write([], []) == []


def test_words_beyond_the_vocabulary_are_those_of_the_table():
    """As it writes them; a value that the corpus has as a mark comes whole, and once."""
    writer = Writer(copying_run(), Decoding(beam=200))  # wide enough for all
    assert "klingon" not in writer.trained.vocabulary.words
    request = writer.from_table(TABLE)
    (sentence,) = writer.write([request], [[0, 0, 0]])
    assert set(sentence.words) <= {"_name_", "klingon", "riverside"}
    assert {"_name_", "klingon"} <= set(sentence.words)  # which nothing else can say
    assert "Klingon" in sentence.text
    assert "Zum Roten Ross" in sentence.text
    assert "_" not in sentence.text


def test_new_words_of_one_source_are_not_written_about_another():
    writer = Writer(copying_run())
    found = [parse_table(f"name[{name}], food[{name}]") for name in ("Qapla", "Batleth")]
    sentences = writer.write([writer.from_table(table) for table in found], [[0, 1, 2]] * 2)
    for sentence, word in zip(sentences, ("qapla", "batleth"), strict=True):
        assert set(sentence.words) <= {"_name_", word}


def test_a_run_of_marks_is_one_value(writer):
    request = writer.from_table(TABLE)
    assert [item.says for item in request.items[:3]] == ["_name_"] * 3
    copied = Writer(copying_run()).write([request._replace(items=request.items[:3])], [[1] * 4])
    assert copied[0].words == ("_name_",) * 4
    assert copied[0].text == "Zum Roten Ross"


def test_paraphrases():
    writer = Writer(untrained_run("paraphrase"), SHORT)
    request = writer.from_sentence("A Blorp sits on the riverside.")
    assert [item.says for item in request.items] == ["blorp", "sits", "riverside"]
    (sentence,) = writer.write([request])
    assert sentence.text
    assert "blorp" in writer.write([request], [[0] * 8])[0].words  # which is needed


def test_draws_differ_and_repeat():
    writer = Writer(untrained_run(), replace(SHORT, method="sample"))
    requests = [writer.from_table(TABLE)] * 5
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(writer.write(requests))
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({sentence.words for sentence in drawn[0]}) > 1


def test_the_end_mark_counts_as_a_word():
    assert Sentence("A pub.", ("a", "pub", "."), (0, 1, 2), -8.0).log_prob_per_word == -2.0


def test_a_run_that_models_sentences_alone():
    with pytest.raises(RunError, match="--task data2text"):
        Writer(untrained_run("text"))


def test_marks_of_keys_that_the_table_lacks_are_not_written(writer):
    table = parse_table("food[Italian], area[riverside]")
    drawing = Writer(writer.trained, Decoding(method="sample", max_words=40))
    torch.manual_seed(0)
    sentences = drawing.write([drawing.from_table(table)] * 50)
    assert not {"_name_", "_near_"} & {word for s in sentences for word in s.words}
