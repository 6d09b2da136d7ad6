"""What a user asks for is what is written."""

from __future__ import annotations

import pytest

from models.data.tables import parse_table, quoted_order
from models.errors import RunError, SettingError
from models.generation.answers import as_asked, best_first, differently, freely, like, under
from models.generation.fitness import Fitness
from models.generation.search import Decoding
from models.generation.writer import Writer
from models.templates.bank import TemplateBank
from tests.models.generation.runs import ending_run, small_corpus, untrained_run

TABLES = [example.table for example in small_corpus().splits["test"][:3]]
KEYS = [key for key, _ in TABLES[0]]


@pytest.fixture(scope="module")
def writer() -> Writer:
    return Writer(untrained_run(), Decoding(beam=2, max_words=8))


@pytest.fixture(scope="module")
def bank() -> TemplateBank:
    return TemplateBank([(0, 1), (2, 3, 2), (3,)], [KEYS] * 3, num_states=4)


@pytest.fixture(scope="module")
def requests(writer):
    return [writer.from_table(table) for table in TABLES]


def no_bank():
    raise AssertionError("states that are given need no bank")


def only(answers):
    """The sentence of each request, which has one answer."""
    return [answer.sentence for (answer,) in answers]


def numbers(answers):
    return [[a.template and a.template.number for a in each] for each in answers]


def test_freely(requests):
    writer = Writer(ending_run(), Decoding(beam=4, max_words=8))
    found = writer.alternatives(requests)
    for (answer,), request, own in zip(freely(writer)(requests), requests, found, strict=True):
        assert len(own) > 1
        assert answer == best_first(writer, request, own, [None] * len(own))[0]
        assert (answer.sentence in own, answer.template) == (True, None)


def test_the_surest_of_what_a_beam_has_found(requests, monkeypatch):
    """Whatever the beam prefers, of those that quote as much; greedy sentences have no rivals."""
    writer = Writer(ending_run(), Decoding(beam=4, max_words=8))

    def last_is_best(trained, table, sentences):
        return [Fitness(100.0 * place, 0) for place, _ in enumerate(sentences)]

    monkeypatch.setattr("models.generation.answers.fitness", last_is_best)
    expected = []
    for request, own in zip(requests, writer.alternatives(requests), strict=True):
        quoted = [len(quoted_order(sentence.words, request.table)) for sentence in own]
        expected.append(max(zip(quoted, range(len(own)), own, strict=True))[-1])
    assert only(freely(writer)(requests)) == expected != writer.write(requests)
    greedy = Writer(writer.trained, Decoding("greedy", max_words=8))
    assert only(freely(greedy)(requests)) == greedy.write(requests)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_without_sureness_the_measure_of_a_beam_decides(length_penalty, writer, requests):
    """Of sentences that quote as much and that are read alike."""
    decoding = Decoding(beam=4, max_words=8, length_penalty=length_penalty, sureness=0.0)
    writer = Writer(ending_run(), decoding)
    for request, own in zip(requests, writer.alternatives(requests), strict=True):
        for answer in (answers := best_first(writer, request, own, [None] * len(own)))[1:]:
            quoted, likely = zip(
                *(of(each, request, length_penalty) for each in (answers[0], answer)), strict=True
            )
            assert quoted[0] > quoted[1] or (quoted[0] == quoted[1] and likely[0] >= likely[1])


def of(answer, request, length_penalty):
    """How much a sentence quotes, and how likely and well read it is."""
    words, log_prob = answer.sentence.words, answer.sentence.log_prob
    likely = log_prob / (len(words) + 1) ** length_penalty - answer.fitness.misread
    return len(quoted_order(words, request.table)), likely


def test_without_a_table_or_templates_the_beam_decides():
    captions = Writer(untrained_run("paraphrase"), Decoding(beam=2, max_words=8))
    language_model = Writer(untrained_run(estimator="rnnlm"), Decoding(beam=2, max_words=8))
    rewritten = [captions.from_sentence("A dog sleeps."), captions.from_sentence("The old town.")]
    tables = [language_model.from_table(table) for table in TABLES]
    for writer, requests in ((captions, rewritten), (language_model, tables)):
        assert only(freely(writer)(requests)) == writer.write(requests)


def test_under_one_template(writer, requests):
    answers = list(under(writer, (0, 3))(requests))
    assert [sentence.states for sentence in only(answers)] == [(0, 3)] * 3
    assert numbers(answers) == [[None]] * 3


def test_like_a_pattern(writer, bank, requests):
    answers = list(like(writer, bank, "? 3 *")(requests))
    assert [sentence.states for sentence in only(answers)] == [(2, 3, 2)] * 3
    assert {bank[number].states for (number,) in numbers(answers)} == {(2, 3, 2)}


def test_like_no_stored_template(writer, bank, requests):
    for answer in like(writer, bank, "1 0")(requests):
        assert isinstance(answer, SettingError)
        assert "'1 0'" in str(answer)


def test_a_wrong_pattern_is_an_error_before_any_work(writer, bank):
    with pytest.raises(SettingError, match="'x'"):
        like(writer, bank, "0 x")


def test_differently(writer, bank, requests):
    for each in numbers(differently(writer, bank, 3)(requests)):
        assert sorted(each) == [0, 1, 2]


def test_too_few_templates(writer, bank, requests):
    for answer in differently(writer, bank, 4)(requests):
        assert isinstance(answer, SettingError)
        assert "3, not 4" in str(answer)


@pytest.mark.parametrize("asked", ["3 0 1", "3,0,1", " 3, 0  1 "])
def test_states_as_asked(writer, requests, asked):
    answers = as_asked(writer, asked, no_bank)(requests)
    assert [sentence.states for sentence in only(answers)] == [(3, 0, 1)] * 3


@pytest.mark.parametrize("asked", ["@1", " @1 "])
def test_a_stored_template_as_asked(writer, bank, requests, asked):
    answers = list(as_asked(writer, asked, lambda: bank)(requests))
    assert [sentence.states for sentence in only(answers)] == [bank[1].states] * 3
    assert numbers(answers) == [[1]] * 3


def test_a_pattern_as_asked(writer, bank, requests):
    answers = as_asked(writer, "* 1", lambda: bank)(requests)
    assert [sentence.states for sentence in only(answers)] == [(0, 1)] * 3


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("4", "no state 4: the last is 3"),
        ("0 1 17", "no state 17"),
        (" , ", "empty"),
        ("", "empty"),
        ("@3", "no template @3: the last is @2"),
        ("@x", "'@x'"),
        ("@", "'@'"),
        ("0 -1", "'-1'"),
        ("9 *", "no state 9"),
        ("name", "'name'"),
    ],
)
def test_templates_that_make_no_sense(writer, bank, asked, message):
    with pytest.raises(SettingError, match=message):
        as_asked(writer, asked, lambda: bank)


@pytest.mark.parametrize("asked", ["0 1", "@0", "* 1"])
def test_a_model_without_templates_follows_none(bank, asked):
    with pytest.raises(RunError, match="without templates"):
        as_asked(Writer(untrained_run(estimator="rnnlm")), asked, lambda: bank)


def test_no_requests(writer, bank):
    for answering in (freely(writer), under(writer, (0,)), differently(writer, bank, 2)):
        assert list(answering([])) == []


def test_a_table_without_known_keys(writer, bank):
    request = writer.from_table(parse_table("planet[Kronos]"))
    assert only(like(writer, bank, "3")([request]))[0].states == (3,)
