"""How well sentences say what they should, in the order they should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.data.corpus import Example
from models.data.tables import Table, quoted_order
from models.generation.answers import Answer, write_differently, write_freely
from models.generation.writer import Sentence, Writer
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
    built_in = writer.trained.config.data.corpus == "synthetic"  # which has rules of its own
    requests = [writer.from_table(table) for table in tables]
    free = [answer.sentence for answer in write_freely(writer, requests)]
    told: list[tuple[Table, Answer]] = []
    different = 0
    for request in watch(requests, "tables under templates"):
        answers, table = write_differently(writer, bank, request, TEMPLATES), request.table
        texts = [answer.sentence.words for answer in answers]
        orders = {slot_order(words) if built_in else quoted_order(words, table) for words in texts}
        different += len(orders) == TEMPLATES
        told += [(table, answer) for answer in answers]
    sentences = [answer.sentence for _, answer in told]
    decoded = map_templates(writer.trained, [Example(sentence.words) for sentence in sentences])
    return Control(
        len(tables),
        _slot_errors(built_in, tables, free),
        _slot_errors(built_in, [table for table, _ in told], sentences),
        template_adherence([a.template.states if a.template else () for _, a in told], decoded),
        different / len(tables),
    )


def _slot_errors(built_in: bool, tables: Sequence[Table], sentences: Sequence[Sentence]) -> float:
    if built_in:
        return corpus_restaurant_errors(tables, [sentence.words for sentence in sentences]).rate
    return corpus_slot_errors(tables, [sentence.text for sentence in sentences]).rate


def template_adherence(
    requested: Sequence[Sequence[int]], decoded: Sequence[Sequence[int]]
) -> float:
    """The share of words whose state is the one that the template asks for at their place.

    `decoded` holds the best states of the generated words (the inference network's MAP path), one
    sequence for each requested template. A word beyond the end of its template does not agree;
    what a template asks for beyond the end of the sentence does not count.
    """
    words = sum(map(len, decoded))
    if words == 0:
        raise ValueError("there are no words to compare")
    agreeing = sum(
        asked == given
        for template, states in zip(requested, decoded, strict=True)
        for asked, given in zip(template, states, strict=False)
    )
    return agreeing / words
