"""Sentences under templates of the training sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.data.delexicalise import quoted_order
from models.generation.writer import Request, Sentence, Writer
from models.templates.bank import StoredTemplate, TemplateBank
from models.templates.choice import different
from models.templates.segments import collapse

CANDIDATES = 100  # templates tried for a request


class Answer(NamedTuple):
    sentence: Sentence
    template: StoredTemplate | None = None  # that it was written under


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


def write_under_each(
    writer: Writer, request: Request, templates: Sequence[StoredTemplate]
) -> list[Answer]:
    """The request under each template, the best sentence first.

    Better is who quotes more of the source, and then who is likelier per word.
    """
    sentences = writer.write([request] * len(templates), [t.states for t in templates])
    answers = [Answer(s, t) for s, t in zip(sentences, templates, strict=True)]
    return sorted(answers, key=lambda answer: _quality(request, answer.sentence), reverse=True)


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


def _quality(request: Request, sentence: Sentence) -> tuple[int, float]:
    if request.table:
        quoted = len(quoted_order(sentence.words, request.table))
    else:
        quoted = len({item.says for item in request.items}.intersection(sentence.words))
    return quoted, sentence.log_prob_per_word
