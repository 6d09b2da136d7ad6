"""How well sentences fit, against the decoder a word at a time and the best states of words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from models.data.batches import collate_sources
from models.data.corpus import Example
from models.data.sources import table_items
from models.data.tables import Table, key_mark, parse_table
from models.data.vocabulary import Vocabulary
from models.generation.fitness import MOST_VALUES, fitness, tables_like
from models.generation.stepper import Stepper
from models.generation.writer import Sentence, Writer
from models.runs import TrainedRun
from models.templates.of_runs import map_templates
from tests.models.generation.runs import PHRASES, SIZES, copying_run, small_corpus, untrained_run

VALUES = {
    "name": ["Juniper", "Zephyr"],
    "eatType": ["pub", "coffee shop", "bar"],
    "area": ["harbour", "old town"],
}
TABLE = parse_table("name[The Anchor], eatType[pub], area[old town]")
TEMPLATES = [(0, 1, 3), (2,), (), (1, 1, 0, 2, 2, 3)]


@pytest.fixture(scope="module")
def trained() -> TrainedRun:
    return untrained_run()


def sentence(words: str) -> Sentence:
    return Sentence(words, tuple(words.split()), (0,) * len(words.split()), 0.0)


def like(table, values=VALUES, vocabulary=None) -> list[Table]:
    return list(tables_like(table, values, vocabulary or small_corpus().vocabulary))


def table_log_probs(trained, table, sentences, values=VALUES) -> list[float]:
    """Given the `values` that each key has in tables."""
    knowing = replace(trained, saved_values=values)
    return [each.table_log_prob for each in fitness(knowing, table, sentences)]


@torch.no_grad()
def log_joint(trained: TrainedRun, table: Table, given: Sentence) -> float:
    """Log p(x, z | table) without the end mark."""
    vocabulary = trained.vocabulary
    source = vocabulary.encode(table_items(table, vocabulary.words))
    stepper = Stepper(trained.model, collate_sources([source]), [given.states])
    position, total = stepper.start(), 0.0
    for step, word in enumerate(given.words):
        words = torch.tensor([vocabulary.number(word, source.new_words)])
        log_prob, choice = stepper.choice_log_probs(position, step).max(-1)  # the template's
        total += float(log_prob + stepper.word_log_probs(position, choice, step)[0, words[0]])
        position = stepper.advance(position, words, choice)
    return total


def test_tables_that_differ_in_one_value():
    """Names are marks in this corpus, so another name is said in the same words."""
    assert like(TABLE) == [
        parse_table("name[The Anchor], eatType[coffee shop], area[old town]"),
        parse_table("name[The Anchor], eatType[bar], area[old town]"),
        parse_table("name[The Anchor], eatType[pub], area[harbour]"),
    ]
    assert len(like((("eatType", "igloo"),))) == 3
    assert not like((("planet", "Kronos"),))
    assert len(like((("x", "0"),), {"x": list(map(str, range(99)))})) == MOST_VALUES


def test_values_that_have_a_mark_are_not_told_from_one_another():
    """Those that answer a question are, with a mark or without."""
    words = Vocabulary([key_mark(key) for key in ("food", "familyFriendly")])
    values = {"food": ["Thai", "fast food"], "familyFriendly": ["yes", "no"]}
    table = parse_table("food[Thai], familyFriendly[no]")
    assert like(table, values, words) == [parse_table("food[Thai], familyFriendly[yes]")]


@pytest.mark.parametrize("model", [SIZES, PHRASES], ids=lambda model: model.posterior)
def test_as_the_decoder_says_word_by_word(model):
    trained = untrained_run(model=model)
    writer = Writer(trained)
    sentences = writer.write([writer.from_table(TABLE)] * len(TEMPLATES), TEMPLATES)
    tables = [TABLE, *like(TABLE)]
    expected = []
    for given in sentences:
        scores = torch.tensor([log_joint(trained, t, given) for t in tables], dtype=torch.double)
        expected.append(float(scores.log_softmax(0)[0]))
    assert table_log_probs(trained, TABLE, sentences) == pytest.approx(expected)
    assert expected[2] == pytest.approx(-math.log(len(tables)))  # nothing said, nothing told


def test_tables_that_differ_in_the_same_value_share_the_probability(trained):
    kinds = [(("name", "The Anchor"), ("eatType", kind)) for kind in VALUES["eatType"]]
    said = [sentence("the pub"), sentence("coffee shop near _name_")]
    found = torch.tensor([table_log_probs(trained, table, said) for table in kinds])
    torch.testing.assert_close(found.exp().sum(0), torch.ones(2))


def test_a_value_that_is_said_is_certain_and_one_passed_over_may_be_any():
    """A model that copies cannot say what the table does not hold."""
    table = (("name", "The Anchor"), ("eatType", "pub"))
    said = [sentence("pub"), sentence("_name_"), sentence("bar")]
    certain, silent, wrong = table_log_probs(copying_run(), table, said)
    assert certain == pytest.approx(0, abs=1e-6)
    assert silent == pytest.approx(-math.log(3), abs=0.2)
    assert wrong < -10


def test_a_word_that_only_the_table_knows():
    """It can be copied from the table, and is an unknown word of all others."""
    table = (("name", "The Anchor"), ("eatType", "igloo"))
    said = [sentence("igloo"), sentence("pub")]
    certain, wrong = table_log_probs(copying_run(), table, said)
    assert certain == pytest.approx(0, abs=1e-6)
    assert wrong < -10


def test_in_single_precision(trained):
    single = untrained_run()
    single.model.float()
    said = [sentence("the pub is near _name_"), sentence("bar")]
    expected = table_log_probs(trained, TABLE, said)
    assert table_log_probs(single, TABLE, said) == pytest.approx(expected, abs=1e-4)


def test_without_another_table_all_are_certain(trained):
    said = [sentence("pub"), sentence("_name_")]
    assert table_log_probs(trained, TABLE, said, {}) == [0, 0]
    assert table_log_probs(trained, (), said) == [0, 0]
    assert table_log_probs(trained, TABLE, []) == []


def test_words_that_are_read_in_another_state(trained):
    """The states that the inference network finds, with some of them changed."""
    words = ("_name_", "is", "a", "pub")
    (best,) = map_templates(trained, [Example(words)])
    other = [(state + 1) % SIZES.num_states for state in best]
    templates = [best, [*other[:1], *best[1:]], other]
    said = [Sentence("", words, tuple(states), 0.0) for states in templates]
    found = fitness(trained, TABLE, [*said, sentence("")])
    assert [each.misread for each in found] == [0, 1, 4, 0]
