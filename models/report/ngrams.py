"""State n-grams, with a filter by state."""

from __future__ import annotations

from collections.abc import Sequence

from models.report.content import NGram
from models.report.markup import Html, element, joined
from models.report.numbers import times
from models.report.parts import chip, scrolling_table


def ngram_table(ngrams: Sequence[NGram], label: str) -> Html:
    head = [
        element("th", "states", scope="col"),
        element("th", "count", scope="col", class_="number"),
        element("th", "words", scope="col"),
    ]
    table = scrolling_table(head, [_row(ngram) for ngram in ngrams], label)
    return element("div", _filter(ngrams), table, id="ngram-browser")


def _filter(ngrams: Sequence[NGram]) -> Html:
    """Controls that only a script can answer: hidden until there is one."""
    states = sorted({state for ngram in ngrams for state in ngram.states})
    buttons = (
        element("button", str(s), type="button", class_=f"s{s}", data_state=s, aria_pressed="false")
        for s in states
    )
    field = element(
        "input",
        id="ngram-states",
        type="text",
        inputmode="numeric",
        autocomplete="off",
        placeholder="all",
    )
    return element(
        "div",
        element("label", "States in a row, such as “3 7”", for_="ngram-states"),
        field,
        element("div", *buttons, class_="buttons", role="group", aria_label="One state"),
        element("p", id="ngram-status", aria_live="polite", class_="meaning"),
        class_="controls",
        hidden=True,
    )


def _row(ngram: NGram) -> Html:
    segments = (
        element("li", words, " ", element("small", times(count))) for words, count in ngram.segments
    )
    return element(
        "tr",
        element("th", joined(map(chip, ngram.states), " "), scope="row", class_="template"),
        element("td", f"{ngram.count:,}", class_="number"),
        element("td", element("ul", *segments, class_="words")),
        data_states=" ".join(map(str, ngram.states)),
    )
