"""The template browser: a table and a template, and the sentence they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.report.content import Browser, Output, TableChoice
from models.report.markup import Html, as_json, element, joined
from models.report.parts import chips, coloured, runs


def template_browser(browser: Browser) -> Html:
    """Controls and data for the script; without one, everything in folds."""
    return joined(
        [
            element("div", _controls(browser), _result(), id="template-browser", hidden=True),
            element("script", as_json(_data(browser)), type="application/json", id="browser-data"),
            element("noscript", *(_fold(table, browser.templates) for table in browser.tables)),
        ]
    )


def _controls(browser: Browser) -> Html:
    tables = (element("option", t.label, value=i) for i, t in enumerate(browser.tables))
    radios = (_radio(i, template) for i, template in enumerate(browser.templates))
    return element(
        "div",
        element("label", "Table", for_="browser-table"),
        element("select", *tables, id="browser-table"),
        element("p", id="browser-label", class_="meaning"),  # whole, where the control cuts it
        element(
            "fieldset",
            element("legend", "Template"),
            element("div", *radios, class_="radios"),
        ),
        class_="controls",
    )


def _radio(index: int, template: Sequence[int]) -> Html:
    button = element("input", type="radio", name="browser-template", value=index)
    number = element("span", f"{index + 1}", class_="index")
    return element("label", button, " ", number, " ", chips(template))


def _result() -> Html:
    return element("div", id="browser-result", aria_live="polite", class_="result")


def _data(browser: Browser) -> list[dict[str, Any]]:
    return [
        {"label": table.label, "outputs": [_output_data(output) for output in table.outputs]}
        for table in browser.tables
    ]


def _output_data(output: Output) -> dict[str, Any]:
    return {
        "template": output.template,
        "text": output.text,
        "runs": runs(output.sentence),
        "note": output.note,
    }


def _fold(table: TableChoice, templates: Sequence[Sequence[int]]) -> Html:
    outputs = (_described(output, templates[output.template]) for output in table.outputs)
    return element("details", element("summary", table.label), *outputs)


def _described(output: Output, template: Sequence[int]) -> Html:
    """The same list that the script makes."""
    rows: list[tuple[str, str]] = [
        ("Text", output.text),
        ("States", coloured(output.sentence)),
        ("Template", chips(template)),
        ("Note", output.note),
    ]
    shown = (joined([element("dt", k), element("dd", v)]) for k, v in rows if v)
    return element("dl", *shown, class_="output")
