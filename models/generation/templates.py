"""Sentences under templates of the training sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.data.mentions import quoted_order
from models.generation.writer import Request, Sentence, Writer
from models.state_patterns import collapse
from models.template_bank import StoredTemplate, TemplateBank
from models.template_choice import different

CANDIDATES = 100  # templates tried for a request


class UnderTemplate(NamedTuple):
    template: StoredTemplate
    sentence: Sentence


def fitting(
    bank: TemplateBank, request: Request, pattern: str | None = None, least: int = 1
) -> list[StoredTemplate]:
    """The most frequent templates of tables with the same keys.

    While fewer than `least` of them differ in more than the lengths of runs, those of the tables
    with the most similar keys are added.
    """
    keys = frozenset(key for key, _ in request.table)
    found: list[StoredTemplate] = []
    for alike in bank.key_sets_like(keys):
        found += bank.search(alike, pattern=pattern, limit=CANDIDATES)
        if len({collapse(template.states) for template in found}) >= least:
            break
    return found


def write_under_each(
    writer: Writer, request: Request, templates: Sequence[StoredTemplate]
) -> list[UnderTemplate]:
    """The request under each template, the best sentence first.

    Better is who quotes more of the source, and then who is likelier per word.
    """
    sentences = writer.write([request] * len(templates), [t.states for t in templates])
    found = [UnderTemplate(t, s) for t, s in zip(templates, sentences, strict=True)]
    return sorted(found, key=lambda each: _quality(request, each.sentence), reverse=True)


def write_differently(
    writer: Writer, bank: TemplateBank, request: Request, number: int
) -> list[UnderTemplate]:
    """So many sentences that tell the table in different orders, the best of each order.

    Where there are not as many orders, as for a bag of words, templates of the better half of the
    sentences, if there are enough that differ, as far from one another as can be.
    """
    every = write_under_each(writer, request, fitting(bank, request, least=number))
    orders: dict[tuple[str, ...], UnderTemplate] = {}
    for each in every:
        orders.setdefault(quoted_order(each.sentence.words, request.table), each)
    if len(orders) >= number:
        return list(orders.values())[:number]
    templates = [each.template.states for each in every]
    chosen = different(templates[: len(every) // 2], number)
    if len(chosen) < number:
        chosen = different(templates, number)
    return [every[index] for index in chosen]


def _quality(request: Request, sentence: Sentence) -> tuple[int, float]:
    if request.table:
        quoted = len(quoted_order(sentence.words, request.table))
    else:
        quoted = len({item.says for item in request.items}.intersection(sentence.words))
    return quoted, sentence.log_prob_per_word
