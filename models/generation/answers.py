"""Ways to answer a request: with states of the model's choice, or under templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from models.errors import RunError, SettingError
from models.generation.templates import UnderTemplate, fitting, write_differently, write_under_each
from models.generation.writer import Request, Sentence, Writer
from models.state_patterns import parse_pattern
from models.template_bank import TemplateBank

PLAIN_STATES = re.compile(r"[\d\s,]+")
NUMBER = re.compile(r"@(\d+)")


class Answer(NamedTuple):
    sentence: Sentence
    template: int | None = None  # the number of a stored one


Answering = Callable[[Sequence[Request]], Iterator[list[Answer] | SettingError]]


def freely(writer: Writer) -> Answering:
    """The model chooses the states."""

    def answer(requests: Sequence[Request]) -> Iterator[list[Answer] | SettingError]:
        return iter([[Answer(sentence)] for sentence in writer.write(requests)])

    return answer


def under(writer: Writer, states: Sequence[int], number: int | None = None) -> Answering:
    """All follow one template."""

    def answer(requests: Sequence[Request]) -> Iterator[list[Answer] | SettingError]:
        sentences = writer.write(requests, [states] * len(requests))
        return iter([[Answer(sentence, number)] for sentence in sentences])

    return answer


def like(writer: Writer, bank: TemplateBank, pattern: str) -> Answering:
    """Each follows the best stored template that the pattern describes."""
    parse_pattern(pattern, bank.num_states)  # before any work

    def one(request: Request) -> list[Answer] | SettingError:
        templates = fitting(bank, request, pattern)
        if not templates:
            return SettingError(f"no stored template is like {pattern!r}")
        return _answers(write_under_each(writer, request, templates)[:1])

    return lambda requests: map(one, requests)


def differently(writer: Writer, bank: TemplateBank, number: int) -> Answering:
    """Each is answered under so many stored templates."""

    def one(request: Request) -> list[Answer] | SettingError:
        found = _answers(write_differently(writer, bank, request, number))
        if len(found) < number:
            return SettingError(f"stored templates that fit: {len(found)}, not {number}")
        return found

    return lambda requests: map(one, requests)


def as_asked(writer: Writer, template: str, bank: Callable[[], TemplateBank]) -> Answering:
    """Under the template that a user wrote: states, `@` and a number, or a pattern."""
    if not writer.trained.model.latent:
        raise RunError(f"{writer.trained.folder} is a model without templates")
    if number := NUMBER.fullmatch(template.strip()):
        return under(writer, _stored(bank(), int(number[1])), int(number[1]))
    if PLAIN_STATES.fullmatch(template):
        return under(writer, _states(template, writer.trained.config.model.num_states))
    return like(writer, bank(), template)


def _answers(found: Sequence[UnderTemplate]) -> list[Answer]:
    return [Answer(each.sentence, each.template.number) for each in found]


def _stored(bank: TemplateBank, number: int) -> tuple[int, ...]:
    if number >= len(bank):
        raise SettingError(f"there is no template @{number}: the last is @{len(bank) - 1}")
    return bank[number].states


def _states(template: str, num_states: int) -> list[int]:
    states = [int(state) for state in template.replace(",", " ").split()]
    if not states:
        raise SettingError("the template is empty: give a state for each word, such as 3 3 17 5")
    if max(states) >= num_states:
        raise SettingError(f"there is no state {max(states)}: the last is {num_states - 1}")
    return states
