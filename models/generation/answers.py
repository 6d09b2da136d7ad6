"""Ways to answer a request: with states of the model's choice, or under templates.

An answer to each request is a list of sentences, or the `SettingError` that says why there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from models.data.tables import quoted_order
from models.errors import RunError, SettingError
from models.generation.fitness import Fitness, fitness
from models.generation.writer import Request, Sentence, Writer
from models.templates.bank import StoredTemplate, TemplateBank
from models.templates.patterns import parse_pattern
from models.templates.segments import collapse, different

CANDIDATES = 100  # templates tried for a request
PLAIN_STATES = re.compile(r"[\d\s,]*")
NUMBER = re.compile(r"@(\d+)")


class Answer(NamedTuple):
    sentence: Sentence
    template: StoredTemplate | None = None  # that it was written under
    fitness: Fitness | None = None  # if sentences competed


Answering = Callable[[Sequence[Request]], Iterator[list[Answer] | SettingError]]


def freely(writer: Writer) -> Answering:
    """The model chooses the states."""
    return lambda requests: ([answer] for answer in write_freely(writer, requests))


def under(writer: Writer, states: Sequence[int], stored: StoredTemplate | None = None) -> Answering:
    """All sentences follow one template."""
    return lambda requests: (
        [Answer(sentence, stored)] for sentence in writer.write(requests, [states] * len(requests))
    )


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
    if match := NUMBER.fullmatch(template.strip()):
        stored, number = bank(), int(match[1])
        if number >= len(stored):
            raise SettingError(f"there is no template @{number}: the last is @{len(stored) - 1}")
        return under(writer, stored[number].states, stored[number])
    if not PLAIN_STATES.fullmatch(template):
        return like(writer, bank(), template)
    states = [int(state) for state in template.replace(",", " ").split()]
    if not states:
        raise SettingError("the template is empty: give a state for each word, such as 3 3 17 5")
    last = writer.trained.config.model.num_states - 1
    if max(states) > last:
        raise SettingError(f"there is no state {max(states)}: the last is {last}")
    return under(writer, states)


def fitting(
    bank: TemplateBank, request: Request, pattern: str | None = None, least: int = 1
) -> list[StoredTemplate]:
    """The most frequent templates of tables with the same keys.

    While fewer than `least` of them differ in more than the lengths of runs, those of the tables
    with the most similar keys are added.
    """
    found: list[StoredTemplate] = []
    for alike in bank.key_sets_like(key for key, _ in request.table):
        found += bank.search(alike, pattern=pattern, limit=CANDIDATES)
        if len({collapse(template.states) for template in found}) >= least:
            break
    return found


def write_freely(writer: Writer, requests: Sequence[Request]) -> Iterator[Answer]:
    """Sentences in states of the model's choice.

    Of all that a beam has found about a table, the best, if the model has templates to read it by.
    """
    for request, found in zip(requests, writer.alternatives(requests), strict=True):
        if len(found) > 1 and request.table and writer.trained.model.latent:
            yield best_first(writer, request, found, [None] * len(found))[0]
        else:
            yield Answer(found[0])


def write_under_each(
    writer: Writer, request: Request, templates: Sequence[StoredTemplate]
) -> list[Answer]:
    """The request under each template, the best sentence first."""
    sentences = writer.write([request] * len(templates), [t.states for t in templates])
    return best_first(writer, request, sentences, templates)


def best_first(
    writer: Writer,
    request: Request,
    sentences: Sequence[Sentence],
    templates: Sequence[StoredTemplate | None],
) -> list[Answer]:
    """Answers to one request, the best first.

    Better is who quotes more of the source; then who leaves the model surer of the table, is
    likelier by the measure of a beam, and is read in the states that it was written in.
    """
    decoding = writer.decoding

    def quality(answer: Answer) -> tuple[int, float]:
        words = answer.sentence.words
        likely = answer.sentence.log_prob / (len(words) + 1) ** decoding.length_penalty
        if request.table:
            quoted = len(quoted_order(words, request.table))
        else:
            quoted = len({item.says for item in request.items}.intersection(words))
        table_log_prob, misread = answer.fitness or (0.0, 0)
        return quoted, likely - misread + decoding.sureness * table_log_prob

    found = fitness(writer.trained, request.table, sentences)
    return sorted(map(Answer, sentences, templates, found), key=quality, reverse=True)


def write_differently(
    writer: Writer, bank: TemplateBank, request: Request, number: int
) -> list[Answer]:
    """So many sentences that tell the table in different orders, the best of each order.

    Where there are not as many orders, as for a bag of words, templates of the better half of the
    sentences, if there are enough that differ, as far from one another as can be.
    """
    templates = fitting(bank, request, least=number)
    every = write_under_each(writer, request, templates)
    orders: dict[tuple[str, ...], Answer] = {}
    for answer in every:
        orders.setdefault(quoted_order(answer.sentence.words, request.table), answer)
    if len(orders) >= number:
        return list(orders.values())[:number]
    states = [answer.template.states for answer in every if answer.template is not None]
    chosen = different(states[: len(states) // 2], number)
    if len(chosen) < number:
        chosen = different(states, number)
    return [every[index] for index in chosen]
