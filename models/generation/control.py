"""How well sentences say what they should, in the order they should."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from models.data.corpus import Example
from models.data.mentions import quoted_order
from models.data.tables import Table
from models.generation.templates import UnderTemplate, write_differently
from models.generation.writer import Request, Sentence, Writer
from models.metrics.control import template_adherence
from models.metrics.restaurant_slots import corpus_restaurant_errors, slot_order
from models.metrics.slot_errors import corpus_slot_errors
from models.template_bank import TemplateBank
from models.templates import map_templates

TEMPLATES = 3  # for each table


@dataclass(frozen=True)
class Control:
    """All but the first are shares."""

    tables: int
    slot_errors: float  # per slot, when the model chooses the states
    slot_errors_under_templates: float
    adherence: float  # words whose best state is the one that the template asks for
    different_orders: float  # tables that each template tells in another order


def measure_control(writer: Writer, bank: TemplateBank, tables: Sequence[Table]) -> Control:
    """Every table once freely, and under three different templates."""
    requests = [writer.from_table(table) for table in tables]
    free = writer.write(requests)
    controlled = [write_differently(writer, bank, request, TEMPLATES) for request in requests]
    flat = [(r, each) for r, found in zip(requests, controlled, strict=True) for each in found]
    return Control(
        len(tables),
        _slot_errors(writer, requests, free),
        _slot_errors(writer, [r for r, _ in flat], [each.sentence for _, each in flat]),
        _adherence(writer, [each for _, each in flat]),
        _different_orders(writer, requests, controlled),
    )


def _slot_errors(
    writer: Writer, requests: Sequence[Request], sentences: Sequence[Sentence]
) -> float:
    tables = [request.table for request in requests]
    if _built_in(writer):
        return corpus_restaurant_errors(tables, [sentence.words for sentence in sentences]).rate
    return corpus_slot_errors(tables, [sentence.text for sentence in sentences]).rate


def _adherence(writer: Writer, found: Sequence[UnderTemplate]) -> float:
    trained = writer.trained
    examples = [Example(each.sentence.words) for each in found]
    decoded = map_templates(trained.model, examples, trained.vocabulary.words)
    return template_adherence([each.template.states for each in found], decoded)


def _different_orders(
    writer: Writer, requests: Sequence[Request], controlled: Sequence[list[UnderTemplate]]
) -> float:
    order = _order(writer)
    tell_apart = 0
    for request, found in zip(requests, controlled, strict=True):
        orders = {order(each.sentence.words, request.table) for each in found}
        tell_apart += len(orders) == TEMPLATES
    return tell_apart / len(requests)


def _order(writer: Writer) -> Callable[[Sequence[str], Table], tuple[str, ...]]:
    if _built_in(writer):
        return lambda words, _: slot_order(words)
    return quoted_order


def _built_in(writer: Writer) -> bool:
    """The rules of E2E do not fit the built-in corpus, which has rules of its own."""
    return writer.trained.config.data.corpus == "synthetic"
