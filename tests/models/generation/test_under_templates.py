"""Sentences under templates of a bank."""

from __future__ import annotations

import pytest

from models.data.tables import parse_table, quoted_order
from models.generation.answers import fitting, write_differently, write_under_each
from models.generation.fitness import Fitness
from models.generation.search import Decoding
from models.generation.writer import Request, Writer
from models.templates.bank import TemplateBank
from models.templates.patterns import parse_pattern
from models.templates.segments import collapse
from tests.models.generation.runs import copying_run, untrained_run

PAIR, TRIPLE = ("name", "food"), ("name", "food", "area")
TEMPLATES = [(0, 1), (0, 1), (0, 0, 1), (2, 1), (3,), (3, 2, 1), (1, 2, 3)]
KEYS = [PAIR, PAIR, PAIR, PAIR, TRIPLE, TRIPLE, ("near",)]
TABLE = parse_table("name[Qapla], food[Klingon]")


@pytest.fixture(scope="module")
def bank() -> TemplateBank:
    return TemplateBank(TEMPLATES, KEYS, num_states=4)


@pytest.fixture(scope="module")
def writer() -> Writer:
    return Writer(untrained_run(), Decoding(beam=2))


@pytest.fixture(scope="module")
def request_(writer) -> Request:
    return writer.from_table(TABLE)


def states(found) -> list[tuple[int, ...]]:
    return [template.states for template in found]


def test_templates_of_the_same_keys(bank, request_):
    assert states(fitting(bank, request_)) == [(0, 1), (0, 0, 1), (2, 1)]


def test_the_order_of_keys_does_not_matter(bank, writer):
    turned = writer.from_table(TABLE[::-1])
    assert states(fitting(bank, turned)) == [(0, 1), (0, 0, 1), (2, 1)]


def test_templates_of_the_most_similar_keys(bank, writer):
    table = parse_table("name[Qapla], food[Klingon], area[riverside], eatType[pub]")
    assert states(fitting(bank, writer.from_table(table))) == [(3,), (3, 2, 1)]


def test_templates_that_a_pattern_describes(bank, request_):
    assert states(fitting(bank, request_, "0 1")) == [(0, 1), (0, 0, 1)]
    assert states(fitting(bank, request_, "3 *")) == [(3,), (3, 2, 1)]  # of other keys
    assert fitting(bank, request_, "2 2 3") == []


@pytest.mark.parametrize(("least", "expected"), [(1, 3), (2, 3), (3, 5), (4, 5), (5, 6), (9, 6)])
def test_as_many_templates_as_are_needed(bank, request_, least, expected):
    """(0, 1) and (0, 0, 1) count as one."""
    found = states(fitting(bank, request_, least=least))
    assert len(found) == expected
    assert len(set(map(collapse, found))) >= min(least, 5)


def test_an_empty_bank(writer, request_):
    nothing = TemplateBank([], [], num_states=4)
    assert fitting(nothing, request_) == []
    assert write_differently(writer, nothing, request_, 2) == []


def test_each_template_is_followed(bank, writer, request_):
    found = write_under_each(writer, request_, list(bank))
    assert {each.template for each in found} == set(bank)
    assert all(each.sentence.states == each.template.states for each in found)


def test_the_best_comes_first(bank, writer, request_):
    """Who quotes more, then who is likelier per word and read as it was written."""
    found = write_under_each(Writer(copying_run(), writer.decoding), request_, list(bank))
    quality = [
        (len(quoted_order(s.words, TABLE)), s.log_prob / (len(s.words) + 1) - fitness.misread)
        for s, _, fitness in found
    ]
    assert quality == sorted(quality, reverse=True)
    assert quality[0][0] > quality[-1][0]


def test_of_those_that_quote_as_much_the_surest_of_the_table_comes_first(
    bank, writer, request_, monkeypatch
):
    """Sure enough, the least likely beats the likeliest, and nothing else decides."""
    before = write_under_each(writer, request_, list(bank))
    given = {each.sentence: Fitness(100.0 * place, 0) for place, each in enumerate(before)}

    def known(trained, table, sentences):
        assert (trained, table) == (writer.trained, TABLE)
        return [given[sentence] for sentence in sentences]

    monkeypatch.setattr("models.generation.answers.fitness", known)
    found = write_under_each(writer, request_, list(bank))
    assert [each.fitness for each in found] == [given[each.sentence] for each in found]
    quality = [(len(quoted_order(s.words, TABLE)), fitness) for s, _, fitness in found]
    assert quality == sorted(quality, reverse=True)
    assert states(each.template for each in found) != states(each.template for each in before)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_different_templates(bank, writer, request_, number):
    found = write_differently(writer, bank, request_, number)
    assert len(found) == number
    assert len({collapse(each.template.states) for each in found}) == number


def test_there_are_only_so_many(bank, writer, request_):
    assert len(write_differently(writer, bank, request_, 9)) == 5


def test_different_orders_if_there_are_as_many(bank, request_):
    writer = Writer(copying_run(), Decoding(beam=20))
    every = write_under_each(writer, request_, fitting(bank, request_))
    possible = {quoted_order(each.sentence.words, TABLE) for each in every}
    found = write_differently(writer, bank, request_, len(possible))
    assert {quoted_order(each.sentence.words, TABLE) for each in found} == possible
    assert found[0] == every[0]


def test_under_patterns_the_states_match(bank, writer, request_):
    for each in write_under_each(writer, request_, fitting(bank, request_, "* 2|0 1")):
        assert parse_pattern("* 2|0 1", 4)(each.sentence.states)
