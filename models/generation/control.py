"""How well sentences say what they should, in the order they should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.data.corpus import Example
from models.data.delexicalise import quoted_order
from models.data.tables import Table
from models.generation.under_templates import Answer, write_differently
from models.generation.writer import Sentence, Writer
from models.metrics.adherence import template_adherence
from models.metrics.slot_errors import corpus_slot_errors
from models.restaurants.slots import corpus_restaurant_errors, slot_order
from models.runs import Watch, unwatched
from models.templates.bank import TemplateBank
from models.templates.of_runs import map_templates

TEMPLATES = 3  # for each table


@dataclass(frozen=True)
class Control:
    """How many tables were told, and shares."""

    tables: int
    slot_errors: float  # per slot, when the model chooses the states
    slot_errors_under_templates: float
    adherence: float  # words whose best state is the one that the template asks for
    different_orders: float  # tables that each template tells in another order


def measure_control(
    writer: Writer, bank: TemplateBank, tables: Sequence[Table], watch: Watch = unwatched
) -> Control:
    """Tells every table once freely, and under three different templates."""
    requests = [writer.from_table(table) for table in tables]
    free = writer.write(requests)
    controlled: list[list[Answer]] = [
        write_differently(writer, bank, request, TEMPLATES)
        for request in watch(requests, "tables under templates")
    ]
    flat = [(table, a) for table, own in zip(tables, controlled, strict=True) for a in own]
    return Control(
        len(tables),
        _slot_errors(writer, tables, free),
        _slot_errors(writer, [table for table, _ in flat], [a.sentence for _, a in flat]),
        _adherence(writer, [answer for _, answer in flat]),
        _different_orders(writer, tables, controlled),
    )


def _built_in(writer: Writer) -> bool:
    """The rules of E2E do not fit the built-in corpus, which has rules of its own."""
    return writer.trained.config.data.corpus == "synthetic"


def _slot_errors(writer: Writer, tables: Sequence[Table], sentences: Sequence[Sentence]) -> float:
    if _built_in(writer):
        return corpus_restaurant_errors(tables, [sentence.words for sentence in sentences]).rate
    return corpus_slot_errors(tables, [sentence.text for sentence in sentences]).rate


def _adherence(writer: Writer, answers: Sequence[Answer]) -> float:
    decoded = map_templates(writer.trained, [Example(a.sentence.words) for a in answers])
    return template_adherence([a.template.states for a in answers if a.template], decoded)


def _different_orders(
    writer: Writer, tables: Sequence[Table], controlled: Sequence[list[Answer]]
) -> float:
    tell_apart = 0
    for table, answers in zip(tables, controlled, strict=True):
        words = [answer.sentence.words for answer in answers]
        if _built_in(writer):
            orders = {slot_order(own) for own in words}
        else:
            orders = {quoted_order(own, table) for own in words}
        tell_apart += len(orders) == TEMPLATES
    return tell_apart / len(tables)
