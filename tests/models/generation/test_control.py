"""Measures of control, on sentences written by hand: every number can be counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from models.config import Decoding
from models.data.batches import Batch
from models.data.tables import Table, parse_table
from models.data.vocabulary import Vocabulary
from models.generation.control import Control, measure_control, template_adherence
from models.generation.writer import Request, Sentence, Writer
from models.restaurants.corpus import synthetic_corpus
from models.templates.bank import TemplateBank

States = tuple[int, ...]

PUB = parse_table("name[The Vaults], eatType[pub], area[old town]")
CAFE = parse_table("name[The Vaults], eatType[cafe], area[old town]")
ONLY_NAME = parse_table("name[The Vaults]")
VOCABULARY = Vocabulary(["_name_", "pub", "cafe", "old", "town", "is", "a", "in", "the"])

FREE = "_name_ is a pub in the old town"
UNDER: dict[States, str] = {  # what is written of any table under each template
    (0, 1, 1, 1): "_name_ pub old town",
    (1, 2, 0): "pub _name_",  # the area is missing, and a name has not state 2
    (1, 1, 1, 0): "old town pub _name_",
}
SAME_ORDER: dict[States, str] = {
    (0, 1): "_name_ pub",
    (0, 2, 1): "_name_ a pub",
    (0, 2, 1, 2): "_name_ is a pub",
}


class FirstOrNot:
    """A model whose best states are known: 0 for `_name_`, 1 for every other word."""

    def posterior(self, batch: Batch) -> Any:
        return SimpleNamespace(argmax=(batch.words != VOCABULARY.number("_name_")).long())


class HandWriter:
    """Writes what it is told to of a table, under a template or none."""

    decoding = Decoding()

    def __init__(self, corpus: str, text: Callable[[Table, States | None], str]) -> None:
        self.text = text
        self.trained = SimpleNamespace(
            config=SimpleNamespace(data=SimpleNamespace(corpus=corpus)),
            model=FirstOrNot(),
            vocabulary=SimpleNamespace(words=VOCABULARY),
            values={},
        )

    def from_table(self, table: Table) -> Request:
        return Request([], table)

    def alternatives(self, requests: Sequence[Request]) -> list[list[Sentence]]:
        return [[sentence] for sentence in self.write(requests)]

    def write(
        self, requests: Sequence[Request], templates: Sequence[States] | None = None
    ) -> list[Sentence]:
        under = templates or [None] * len(requests)
        texts = [self.text(r.table, states) for r, states in zip(requests, under, strict=True)]
        return [_sentence(text) for text in texts]


def _sentence(text: str) -> Sentence:
    words = tuple(text.split())
    return Sentence(text.replace("_name_", "The Vaults"), words, (0,) * len(words), -1.0)


def measure(
    *tables: Table,
    free: str = FREE,
    under: dict[States, str] = UNDER,
    corpus: str = "synthetic",
) -> Control:
    writer = HandWriter(corpus, lambda _, states: free if states is None else under[states])
    keys = [key for key, _ in PUB]
    bank = TemplateBank(list(under), [keys] * len(under), num_states=3)
    return measure_control(cast(Writer, writer), bank, tables)


def test_one_table():
    """Under templates, one of nine entries is missing, and one of ten words in another state."""
    found = measure(PUB)
    assert (found.tables, found.slot_errors, found.different_orders) == (1, 0, 1)
    assert found.slot_errors_under_templates == pytest.approx(1 / 9)
    assert found.adherence == pytest.approx(9 / 10)


def test_errors_are_counted_over_all_tables():
    """Of the cafe they say that it is a pub: another entry in each sentence is wrong."""
    found = measure(PUB, CAFE)
    assert (found.tables, found.different_orders) == (2, 1)
    assert found.slot_errors == pytest.approx(1 / 6)
    assert found.slot_errors_under_templates == pytest.approx((1 + 4) / 18)
    assert found.adherence == pytest.approx(18 / 20)


def test_free_sentences_count_apart_from_those_under_templates():
    silent = measure(PUB, free="it is")
    assert silent.slot_errors == 1
    assert silent.slot_errors_under_templates == measure(PUB).slot_errors_under_templates
    assert measure(PUB, under=SAME_ORDER).slot_errors == 0


def test_what_is_added_is_an_error():
    assert measure(ONLY_NAME).slot_errors == 2  # entries more than the one that there is


def test_words_beyond_their_template_do_not_adhere():
    """Each is a name, in state 0 as asked, with so many words more than the template has."""
    under = {(0,): "_name_ is a", (0, 1): "_name_ pub is", (0, 1, 0): "_name_ pub"}
    assert measure(PUB, under=under).adherence == pytest.approx((1 + 2 + 2) / 8)


def test_three_templates_that_tell_in_one_order():
    found = measure(PUB, under=SAME_ORDER)
    assert found.different_orders == 0
    assert found.slot_errors_under_templates == pytest.approx(1 / 3)


def test_two_orders_are_not_three():
    assert measure(PUB, under=dict(list(UNDER.items())[:2])).different_orders == 0


def test_real_text_is_judged_by_its_own_rules():
    """By the text for readers, not by marks; orders are those of the table's entries alone."""
    found = measure(PUB, ONLY_NAME, corpus="e2e")
    assert found.slot_errors == pytest.approx(1 / 4)  # where only the name is asked for, a pub
    assert found.different_orders == pytest.approx(1 / 2)
    assert measure(PUB, ONLY_NAME).different_orders == 1  # the built-in rules need no table


def test_true_sentences_have_no_errors():
    """Whatever the template: three sentences of the corpus cannot be wrong about their tables."""
    examples = synthetic_corpus(30, 0, 0).splits["train"]
    true = {example.table: " ".join(example.words) for example in examples}
    writer = HandWriter("synthetic", lambda table, _: true[table])
    bank = TemplateBank(list(UNDER), [[]] * len(UNDER), 3)
    found = measure_control(cast(Writer, writer), bank, list(true))
    assert (found.slot_errors, found.slot_errors_under_templates) == (0, 0)
    assert found.tables == len(true)
    assert found.different_orders == 0  # it is one sentence three times


def test_template_adherence():
    assert template_adherence([[1, 2, 3]], [[1, 2, 3]]) == 1
    assert template_adherence([[1, 2, 3], [5]], [[1, 0], [5, 5]]) == 2 / 4
    with pytest.raises(ValueError, match="no words"):
        template_adherence([[1]], [[]])
    with pytest.raises(ValueError, match="zip"):
        template_adherence([[1], [2]], [[1]])
