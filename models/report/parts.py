"""Tables, lists and coloured sentences of the page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from models.report.content import Cell, Coloured, Grid, StateWords
from models.report.markup import Html, element, joined
from models.report.numbers import MISSING, cell_text, decimal, percent, times
from models.templates import segments


def fact_list(facts: Sequence[tuple[str, str]]) -> Html:
    pairs = (element("div", element("dt", key), element("dd", value)) for key, value in facts)
    return element("dl", *pairs, class_="facts")


def number_table(grid: Grid, label: str) -> Html:
    """Columns of numbers are set to the right."""
    numeric = [_is_numeric([row[i] for row in grid.rows]) for i in range(len(grid.columns))]
    rows = (map(_cell, range(len(row)), row, numeric) for row in grid.rows)
    head = [
        element("th", name, scope="col", class_="number" if number else None)
        for name, number in zip(grid.columns, numeric, strict=True)
    ]
    return scrolling_table(head, [element("tr", *row) for row in rows], label)


def scrolling_table(head: Sequence[Html], rows: Sequence[Html], label: str) -> Html:
    """A table that scrolls in its own box where it is wider than the page."""
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="scroll", role="region", tabindex=0, aria_label=label)


def coloured(sentence: Coloured) -> Html:
    """Each run of a state in its colour, with its number at the end."""
    return joined((run(state, words) for state, words in runs(sentence)), " ")


def runs(sentence: Coloured) -> list[tuple[int, str]]:
    """State and words of each run."""
    return [(state, " ".join(run)) for state, run in segments(sentence.words, sentence.states)]


def run(state: int, words: str) -> Html:
    return element("span", words, " ", element("small", str(state)), class_=f"run s{state}")


def sentence_list(sentences: Sequence[Coloured]) -> Html:
    items = (element("li", coloured(sentence)) for sentence in sentences)
    return element("ol", *items, class_="sentences")


def chips(states: Sequence[int]) -> Html:
    """A template, a run of the same state as one chip with its length."""
    lengths = [(state, len(list(group))) for state, group in groupby(states)]
    marks = (chip(state, times(n, smallest=2)) for state, n in lengths)
    return element("span", joined(marks, " "), class_="template")


def chip(state: int, suffix: str = "") -> Html:
    return element("span", f"{state}{suffix}", class_=f"chip s{state}", data_state=state)


def state_table(states: Sequence[StateWords], label: str) -> Html:
    head = [
        element("th", "state", scope="col"),
        element("th", "share", scope="col"),
        element("th", "words, the closest first", scope="col"),
    ]
    largest = max((row.share for row in states), default=0)
    return scrolling_table(head, [_state_row(row, largest) for row in states], label)


def _state_row(row: StateWords, largest: float) -> Html:
    length = 100 * row.share / largest if largest else 0
    bar = element("span", class_="bar", style=f"--length:{length:.1f}%", aria_hidden="true")
    words = (
        element("li", word, " ", element("small", decimal(value))) for word, value in row.words
    )
    return element(
        "tr",
        element("th", chip(row.state), scope="row"),
        element("td", percent(row.share), bar, class_=f"share s{row.state}"),
        element("td", element("ul", *words, class_="words")),
    )


def _cell(column: int, value: Cell, number: bool) -> Html:
    kind = "number" if number else None
    if column == 0:
        return element("th", cell_text(value), scope="row", class_=kind)
    return element("td", _seen_and_said(value), class_=kind)


def _seen_and_said(value: Cell) -> Html:
    """A missing value is a dash to the eye, and words to a screen reader."""
    if value is not None:
        return joined([cell_text(value)])
    dash = element("span", MISSING, aria_hidden="true")
    return joined([dash, element("span", "not measured", class_="unseen")])


def _is_numeric(values: Sequence[Cell]) -> bool:
    return not any(isinstance(value, str) for value in values)
