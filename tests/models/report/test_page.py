"""The text of the page: complete, harmless, the same each time."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from copy import deepcopy
from dataclasses import fields, replace

import pytest

from models.report.content import Grid, Report
from models.report.page import render
from tests.models.report.document import Node, parse
from tests.models.report.example import BROWSER, ESTIMATORS, EVERYTHING, HOSTILE

SECTIONS = {
    "facts": "facts",
    "charts": "curves",
    "comparison": "comparison",
    "sentences": "sentences",
    "browser": "templates",
    "ngrams": "ngrams",
    "states": "states",
}
EMPTY = Report("empty")


@pytest.fixture(scope="module")
def page() -> Node:
    return parse(render(EVERYTHING))


def section_names(tree: Node) -> list[str | None]:
    return [section.attributes["id"] for section in tree.all("section")]


def test_every_part_has_a_section_and_a_link_to_it(page):
    assert section_names(page) == list(SECTIONS.values())
    links = [link.attributes["href"] for link in page.one("nav").all("a")]
    assert links == [f"#{name}" for name in SECTIONS.values()]


def test_every_field_of_a_report_is_a_part():
    assert {field.name for field in fields(Report)} == {"title", *SECTIONS}


@pytest.mark.parametrize(("part", "section"), SECTIONS.items())
def test_a_missing_part_is_left_out(part, section):
    tree = parse(render(replace(EVERYTHING, **{part: getattr(EMPTY, part)})))
    expected = [name for name in SECTIONS.values() if name != section]
    assert section_names(tree) == expected
    assert len(tree.one("nav").all("a")) == len(expected)


@pytest.mark.parametrize(("part", "section"), SECTIONS.items())
def test_a_part_can_be_alone(part, section):
    tree = parse(render(replace(EMPTY, **{part: getattr(EVERYTHING, part)})))
    assert section_names(tree) == [section]


def test_nothing_at_all():
    tree = parse(render(EMPTY))
    assert not tree.all("nav")
    assert tree.one("main").text.strip() == "There is nothing in this report yet."


def test_a_part_with_no_rows_is_missing():
    assert section_names(parse(render(replace(EMPTY, comparison=Grid(("a",), ()))))) == []


def test_hostile_text_stays_text(page):
    """Title, fact, sentence, output, segment and word: each holds the text as it was given."""
    assert not page.all("b", onclick="alert(1)")
    assert page.one("h1").text == EVERYTHING.title
    assert HOSTILE in page.one("section", id="facts").text
    assert HOSTILE in page.one("section", id="sentences").text
    assert HOSTILE in page.one("noscript").text
    assert HOSTILE in page.one("section", id="ngrams").text
    assert HOSTILE in page.one("section", id="states").text


def test_hostile_text_stays_text_everywhere_else():
    """In a label, a chart, the name of a run and the cells of a table."""
    chart = EVERYTHING.charts[0]
    curve = replace(chart.curves[0], run=HOSTILE)
    table = replace(BROWSER[0], label=HOSTILE)
    report = replace(
        EMPTY,
        charts=(replace(chart, title=HOSTILE, meaning=HOSTILE, curves=(curve,)),),
        comparison=Grid((HOSTILE,), ((HOSTILE,),)),
        browser=(table,),
    )
    tree = parse(render(report))
    assert not tree.all("b", onclick="alert(1)")
    assert tree.one("figure").text.count(HOSTILE) == 5  # heading, meaning, title, desc, legend
    assert tree.one("section", id="comparison").text.count(HOSTILE) == 2
    assert tree.one("option").text == HOSTILE


def test_data_is_json_that_cannot_leave_its_script():
    page = render(EVERYTHING)
    start = page.index('id="browser-data">') + len('id="browser-data">')
    text = page[start : page.index("</script>", start)]
    assert not set("<>&") & set(text)
    tables = json.loads(text)
    assert [table["label"] for table in tables] == [table.label for table in BROWSER]
    assert HOSTILE in tables[1]["outputs"][1]["text"]


def test_nothing_comes_from_elsewhere(page):
    for tag in ("img", "iframe", "object", "audio", "video", "embed"):
        assert not page.all(tag)
    assert all("src" not in script.attributes for script in page.all("script"))
    assert [link.attributes["href"] for link in page.all("link")] == ["data:,"]
    assert "@import" not in page.one("style").text
    assert "url(" not in page.one("style").text


def test_policy_allows_the_one_script_alone(page):
    policy = page.all("meta")[1].attributes["content"] or ""
    digest = hashlib.sha256(page.all("script")[-1].text.encode()).digest()
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert "default-src 'none'" in policy


def test_same_report_same_text():
    assert render(EVERYTHING) == render(deepcopy(EVERYTHING))


@pytest.mark.slow
def test_same_bytes_in_a_process_that_hashes_differently():
    code = (
        "from tests.models.report.example import EVERYTHING; from models.report.page import render;"
        "import hashlib; print(hashlib.sha256(render(EVERYTHING).encode()).hexdigest())"
    )
    here = hashlib.sha256(render(EVERYTHING).encode()).hexdigest()
    there = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == here


def test_dollar_signs_are_no_placeholders():
    tree = parse(render(replace(EMPTY, facts=(("price", "$title ${style} $$"),))))
    assert tree.one("dd").text == "$title ${style} $$"


def test_basics_of_a_document(page):
    assert page.one("html").attributes["lang"] == "en"
    assert page.one("meta", name="viewport").attributes["content"].startswith("width=device-width")
    assert page.one("a", **{"class": "skip"}).attributes["href"] == "#content"
    assert page.one("main").attributes["id"] == "content"
    ids = [n.attributes["id"] for tag in SEEN for n in page.all(tag) if "id" in n.attributes]
    assert len(ids) == len(set(ids)) > 20


SEEN = ("section", "h2", "title", "desc", "main", "div", "input", "select", "script", "p")


def test_numbers_are_all_there(page):
    rows = page.one("section", id="comparison").one("tbody").all("tr")
    cells = ["41.200", "4.100", "44.500", "7.250", "18", "0.710"]
    cells += ["\N{EN DASH}not measured", "1,234"]
    assert [cell.text for cell in rows[0].all("td")] == cells
    assert [row.one("th").text for row in rows] == list(ESTIMATORS)
