"""Ways to answer a request: with states of the model's choice, or under templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from models.errors import RunError, SettingError
from models.generation.under_templates import Answer, fitting, write_differently, write_under_each
from models.generation.writer import Request, Writer
from models.templates.bank import StoredTemplate, TemplateBank
from models.templates.patterns import parse_pattern

PLAIN_STATES = re.compile(r"[\d\s,]+")
NUMBER = re.compile(r"@(\d+)")

Answering = Callable[[Sequence[Request]], Iterator[list[Answer] | SettingError]]


def freely(writer: Writer) -> Answering:
    """The model chooses the states."""
    return lambda requests: iter([[Answer(sentence)] for sentence in writer.write(requests)])


def under(writer: Writer, states: Sequence[int], stored: StoredTemplate | None = None) -> Answering:
    """All sentences follow one template."""

    def answer(requests: Sequence[Request]) -> Iterator[list[Answer] | SettingError]:
        sentences = writer.write(requests, [states] * len(requests))
        return iter([[Answer(sentence, stored)] for sentence in sentences])

    return answer


def like(writer: Writer, bank: TemplateBank, pattern: str) -> Answering:
    """Each sentence follows the best stored template that the pattern describes."""
    parse_pattern(pattern, bank.num_states)  # before any work

    def one(request: Request) -> list[Answer] | SettingError:
        templates = fitting(bank, request, pattern)
        if not templates:
            return SettingError(f"no stored template is like {pattern!r}")
        return write_under_each(writer, request, templates)[:1]

    return lambda requests: map(one, requests)


def differently(writer: Writer, bank: TemplateBank, number: int) -> Answering:
    """Each request is answered under so many stored templates."""

    def one(request: Request) -> list[Answer] | SettingError:
        found = write_differently(writer, bank, request, number)
        if len(found) < number:
            return SettingError(f"stored templates that fit: {len(found)}, not {number}")
        return found

    return lambda requests: map(one, requests)


def as_asked(writer: Writer, template: str, bank: Callable[[], TemplateBank]) -> Answering:
    """Under the template that a user wrote: states, `@` and a number, or a pattern."""
    if not writer.trained.model.latent:
        raise RunError(f"{writer.trained.folder} is a model without templates")
    if number := NUMBER.fullmatch(template.strip()):
        stored = bank()
        if int(number[1]) >= len(stored):
            raise SettingError(f"there is no template @{number[1]}: the last is @{len(stored) - 1}")
        return under(writer, stored[int(number[1])].states, stored[int(number[1])])
    if template.strip() and not PLAIN_STATES.fullmatch(template):
        return like(writer, bank(), template)
    states = [int(state) for state in template.replace(",", " ").split()]
    if not states:
        raise SettingError("the template is empty: give a state for each word, such as 3 3 17 5")
    last = writer.trained.config.model.num_states - 1
    if max(states) > last:
        raise SettingError(f"there is no state {max(states)}: the last is {last}")
    return under(writer, states)
