"""One page from a report: no network, no other file; the same report, the same bytes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

from models.report.browser import template_browser
from models.report.charts import chart_figures
from models.report.colours import state_css
from models.report.content import Coloured, Report
from models.report.markup import Html, element, joined
from models.report.ngrams import ngram_table
from models.report.parts import fact_list, number_table, sentence_list, state_table

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Section:
    name: str  # also its address in the page
    heading: str
    intro: str
    body: Html


def render(report: Report) -> str:
    """A whole HTML document; parts that the report has not are left out."""
    sections = [*_numbers(report), *_states_in_use(report)]
    script = _read("page.js")
    return Template(_read("page.html")).substitute(
        title=joined([report.title]),
        style=_read("page.css") + state_css(_states(report)),
        script=script,
        script_hash=_sha256(script),
        navigation=_navigation(sections),
        sections=joined(map(_section, sections), "\n") or _nothing(),
    )


def _numbers(report: Report) -> Iterator[Section]:
    if report.facts:
        yield Section("facts", "The run", "", fact_list(report.facts))
    if report.scores and report.scores.rows:
        yield Section("scores", "Scores", "", number_table(report.scores, "Scores"))
    if report.charts:
        intro = "A gap is a value that is no finite number. Beside each run, its last value."
        body = element("div", chart_figures(report.charts), class_="charts")
        yield Section("curves", "Training curves", intro, body)
    if report.comparison and report.comparison.rows:
        body = number_table(report.comparison, "Estimators compared")
        yield Section("comparison", "Estimators compared", "", body)


def _states_in_use(report: Report) -> Iterator[Section]:
    if report.sentences:
        intro = "Words of one state share a colour; the number after them is the state."
        yield Section("sentences", "Sentences by state", intro, sentence_list(report.sentences))
    if report.browser and report.browser.tables:
        intro = "Choose a table and a template, and see what the model says about it."
        yield Section("templates", "Template browser", intro, template_browser(report.browser))
    if report.ngrams:
        intro = "States that often follow one another, and the words they stand for."
        body = ngram_table(report.ngrams, "State n-grams")
        yield Section("ngrams", "State n-grams", intro, body)
    if report.states:
        intro = "The share of all words that each state has, and how closely words are tied to it."
        body = state_table(report.states, "States and their words")
        yield Section("states", "States and their words", intro, body)


def _section(section: Section) -> Html:
    heading = f"{section.name}-heading"
    return element(
        "section",
        element("h2", section.heading, id=heading),
        element("p", section.intro, class_="meaning") if section.intro else "",
        section.body,
        id=section.name,
        aria_labelledby=heading,
    )


def _navigation(sections: list[Section]) -> Html:
    if not sections:
        return Html()
    links = (element("li", element("a", s.heading, href=f"#{s.name}")) for s in sections)
    return element("nav", element("ul", *links), aria_label="Parts of the report")


def _nothing() -> Html:
    return element("p", "There is nothing in this report yet.")


def _states(report: Report) -> Iterator[int]:
    """Every state that has a colour somewhere on the page."""
    for sentence in _all_sentences(report):
        yield from sentence.states
    for template in report.browser.templates if report.browser else ():
        yield from template
    for ngram in report.ngrams:
        yield from ngram.states
    yield from (row.state for row in report.states)


def _all_sentences(report: Report) -> Iterator[Coloured]:
    yield from report.sentences
    for table in report.browser.tables if report.browser else ():
        yield from (output.sentence for output in table.outputs)


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _sha256(script: str) -> str:
    """What the page's security policy knows its one script by."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
