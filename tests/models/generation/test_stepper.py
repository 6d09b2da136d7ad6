"""Word by word, the decoder says what it says of whole sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from models.data.batches import collate_sources
from models.data.vocabulary import END, PAD, START, UNKNOWN
from models.generation.stepper import Stepper
from models.templates.segments import Phrases
from tests.models.generation.enumeration import (
    CONFIG,
    NEW_WORD,
    PLAIN,
    SOURCES,
    STATES,
    WITH_NEED,
    WITH_NEW_WORD,
    log_joint,
    phrase_log_joint,
    phrase_model,
    tiny_model,
)

WORDS, PATH = [4, 5, NEW_WORD, 4], [1, 0, 0, 1]
TEMPLATES = [[1], [0, 1, 1], [0, 0]]


def stepper(latent=True, templates=None, sources=SOURCES) -> Stepper:
    return Stepper(tiny_model(latent=latent), collate_sources(sources), templates)


def repeated(value: int, rows: int = len(SOURCES)) -> torch.Tensor:
    return torch.full((rows,), value)


def possible(log_probs) -> list[list[int]]:
    """Of each row, what has a chance."""
    return [row.isfinite().nonzero().flatten().tolist() for row in log_probs]


@torch.no_grad()
@pytest.mark.parametrize("word_layer", [True, False])
@pytest.mark.parametrize("latent", [True, False])
def test_steps_add_up_to_the_score_of_the_whole(latent, word_layer):
    """The first source is shorter than the other in the batch."""
    model = tiny_model(latent=latent, config=replace(CONFIG, word_layer=word_layer))
    sources = [WITH_NEW_WORD, PLAIN, WITH_NEED]
    steps = Stepper(model, collate_sources(sources))
    position, total = steps.start(), torch.zeros(2)
    position = position.select(torch.tensor([2, 0]))
    for step, (word, state) in enumerate(zip(WORDS, PATH, strict=True)):
        state = state if latent else 0
        states, words = repeated(state, 2), repeated(word, 2)
        total = total + steps.choice_log_probs(position, step)[:, state]
        total = total + steps.word_log_probs(position, states, step)[:, word]
        position = steps.advance(position, words, states)
    for row, source in enumerate([WITH_NEED, WITH_NEW_WORD]):
        assert_close(total[row], log_joint(model, source, [WORDS], [PATH]).total()[0])


@torch.no_grad()
def test_steps_of_phrases_add_up_to_the_score_of_the_whole():
    """The last choice, to go on, keeps the state of the word before."""
    model = phrase_model()
    steps = Stepper(model, collate_sources([WITH_NEW_WORD]))
    position, total = steps.start(), torch.zeros(1)
    choices, path, starts = [1, STATES, 0, 0], [1, 1, 0, 0], [1, 0, 1, 1]
    for step, (word, choice) in enumerate(zip(WORDS, choices, strict=True)):
        total = total + steps.choice_log_probs(position, step)[:, choice]
        chosen = repeated(choice, 1)
        total = total + steps.word_log_probs(position, chosen, step)[:, word]
        position = steps.advance(position, repeated(word, 1), chosen)
    assert steps.template(choices) == Phrases(path, starts)
    whole = phrase_log_joint(model, WITH_NEW_WORD, WORDS, path, starts)
    assert_close(total, whole.total())


@torch.no_grad()
def test_a_phrase_begins_at_first_and_ends_when_it_is_long():
    steps = Stepper(phrase_model(), collate_sources([PLAIN]))
    position, go_on = steps.start(), repeated(STATES, 1)
    everything = list(range(STATES + 1))
    assert possible(steps.choice_log_probs(position, 0)) == [everything[:-1]]
    position = steps.advance(position, repeated(4, 1), repeated(1, 1))
    assert possible(steps.choice_log_probs(position, 1)) == [everything]
    position = steps.advance(position, repeated(4, 1), go_on)
    assert possible(steps.choice_log_probs(position, 2)) == [everything[:-1]]


@torch.no_grad()
def test_a_template_of_phrases_leaves_one_choice():
    """That of plain states has phrases where they change; one that is too long is cut in two."""
    split = Phrases([1, 1, 0], [True, True, True])
    source = collate_sources([PLAIN, PLAIN])
    steps = Stepper(phrase_model(), source, [split, [1, 1, 1, 0]])
    position, asked = steps.start(), []
    for step in range(4):
        choices = possible(steps.choice_log_probs(position, step))
        asked.append(choices)
        first = torch.tensor([row[0] for row in choices])
        position = steps.advance(position, repeated(4, 2), first)
    assert asked[:3] == [[[1], [1]], [[1], [STATES]], [[0], [1]]]
    assert asked[3][1] == [0]


@torch.no_grad()
def test_each_source_has_its_own_words():
    steps = stepper()
    position = steps.advance(steps.start(), repeated(4), repeated(0))
    first = steps.word_log_probs(steps.start(), repeated(0), 0)
    later = steps.word_log_probs(position, repeated(0), 1)
    assert possible(first) == [[4, 5], [4, 5, NEW_WORD], [4, 5, NEW_WORD]]
    assert possible(later) == [[END, *words] for words in possible(first)]


@torch.no_grad()
def test_states_are_a_distribution():
    steps = stepper()
    log_probs = steps.choice_log_probs(steps.start(), 0)
    assert log_probs.shape == (len(SOURCES), STATES)
    assert_close(log_probs.exp().sum(-1), torch.ones(len(SOURCES)).double())


@torch.no_grad()
def test_what_is_forbidden_was_possible_before():
    """So the scores of what is left are the model's, not those of a renormalised one."""
    steps = stepper(sources=[PLAIN])
    log_probs = steps.word_log_probs(steps.start(), repeated(0, 1), 0)
    assert log_probs.exp().sum() < 0.999
    assert (log_probs[0, [PAD, START, UNKNOWN, END]] == -torch.inf).all()


@torch.no_grad()
def test_a_template_leaves_one_state_with_its_own_probability():
    free, bound = stepper(), stepper(templates=TEMPLATES)
    expected = free.choice_log_probs(free.start(), 0)
    found = bound.choice_log_probs(bound.start(), 0)
    assert possible(found) == [[1], [0], [0]]
    for row, state in enumerate([1, 0, 0]):
        assert_close(found[row, state], expected[row, state])


@torch.no_grad()
def test_after_its_template_a_sentence_ends():
    steps = stepper(templates=TEMPLATES)
    ends = [possible(steps.word_log_probs(steps.start(), repeated(0), step)) for step in range(4)]
    assert [[words == [END] for words in at] for at in ends] == [
        [False, False, False],
        [True, False, False],
        [True, False, True],
        [True, True, True],
    ]
    assert not any(END in words for words in ends[0])
    assert possible(steps.choice_log_probs(steps.start(), 2)) == [[0, 1], [1], [0, 1]]


@torch.no_grad()
def test_templates_go_with_sources_not_with_rows():
    steps = stepper(templates=TEMPLATES)
    position = steps.start().select(torch.tensor([2, 0, 0, 1]))
    assert possible(steps.choice_log_probs(position, 0)) == [[0], [1], [1], [0]]
    ends = possible(steps.word_log_probs(position, repeated(0, 4), 1))
    assert [words == [END] for words in ends] == [False, True, True, False]


@torch.no_grad()
def test_a_word_beyond_the_vocabulary_is_read_as_unknown():
    steps = stepper()
    new = steps.advance(steps.start(), repeated(NEW_WORD), repeated(1))
    unknown = steps.advance(steps.start(), repeated(UNKNOWN), repeated(1))
    known = steps.advance(steps.start(), repeated(4), repeated(1))
    assert torch.equal(new.hidden, unknown.hidden)
    assert not torch.equal(new.hidden, known.hidden)


@torch.no_grad()
def test_the_state_before_matters():
    steps = stepper()
    one, other = (steps.advance(steps.start(), repeated(4), repeated(z)) for z in (0, 1))
    assert not torch.equal(one.hidden, other.hidden)


def test_needed_words():
    assert stepper().needed[[2, 0]].tolist() == [[PAD, 6, 6], [PAD, PAD, PAD]]


@torch.no_grad()
def test_without_templates_there_is_one_state():
    steps = stepper(latent=False)
    assert steps.num_states == 0
    assert steps.choice_log_probs(steps.start(), 0).tolist() == [[0.0]] * len(SOURCES)
    with pytest.raises(ValueError, match="cannot follow"):
        stepper(latent=False, templates=TEMPLATES)


@torch.no_grad()
def test_words_that_can_only_be_copied_need_a_source_that_says_them():
    source = collate_sources(SOURCES)
    steps = Stepper(tiny_model(), source, copied_only=[4, NEW_WORD])
    log_probs = steps.word_log_probs(steps.start(), repeated(0), 0)
    for word in (4, NEW_WORD):
        says_it = (source.says == word).any(-1)
        assert says_it.any() or word == 4
        assert log_probs[:, word].isfinite().tolist() == says_it.tolist()
