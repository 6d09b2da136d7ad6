"""Tables, templates and sentences in the page."""

from __future__ import annotations

from dataclasses import replace

from models.report.content import Grid, Report, coloured
from models.report.page import render
from models.templates.analysis import StateWords, WordShare
from tests.models.report.document import Node, parse
from tests.models.report.example import BROWSER, NGRAMS


def section(**part) -> Node:
    """Of a report with this part alone."""
    return parse(render(Report("t", **part))).one("section")


def test_each_run_has_the_number_of_its_state():
    tree = section(sentences=(coloured("abcd", (3, 3, 7, 3)),)).one("li")
    assert tree.text == "a b 3 c 7 d 3"
    assert [run.attributes["class"] for run in tree.children if not isinstance(run, str)] == [
        "run s3",
        "run s7",
        "run s3",
    ]


def test_templates_in_short():
    output = replace(BROWSER[0].outputs[0], template=(3, 7, 7, 7, 3))
    tree = section(browser=(replace(BROWSER[0], outputs=(output,)),))
    label = tree.one("fieldset").one("label")
    assert label.one("span", **{"class": "template"}).text == "3 7\N{MULTIPLICATION SIGN}3 3"


def test_columns_of_numbers_are_set_to_the_right():
    grid = Grid(("name", "score", "word"), (("a", 1.0, "x"), ("b", None, "y")))
    tree = section(comparison=grid)
    assert [th.attributes.get("class") for th in tree.one("thead").all("th")] == [
        None,
        "number",
        None,
    ]
    assert [th.text for th in tree.one("tbody").all("th", scope="row")] == ["a", "b"]
    assert tree.one("div", role="region").attributes["aria-label"] == "Estimators compared"


def test_bars_are_relative_to_the_largest_state():
    words = (WordShare("w", 0.5, 1.0),)
    tree = section(states=(StateWords(1, 0.4, ()), StateWords(2, 0.1, words)))
    styles = [bar.attributes["style"] for bar in tree.all("span", **{"class": "bar"})]
    assert styles == ["--length:100.0%", "--length:25.0%"]
    assert tree.one("li").text == "w 0.500"


def test_shares_are_in_percent():
    tree = section(states=(StateWords(1, 0.2136, ()),))
    assert tree.one("td", **{"class": "share s1"}).text == "21.4 %"


def test_states_of_no_share_have_no_bar():
    tree = section(states=(StateWords(1, 0.0, ()),))
    assert tree.one("span", **{"class": "bar"}).attributes["style"] == "--length:0.0%"


def test_every_ngram_is_there_with_a_button_for_each_state():
    tree = section(ngrams=NGRAMS)
    rows = tree.one("tbody").all("tr")
    assert [row.attributes["data-states"] for row in rows] == ["3 7", "7 12 5", "37 5"]
    assert [button.text for button in tree.all("button")] == ["3", "5", "7", "12", "37"]
    assert rows[0].all("li")[0].text == "_name_ is a \N{MULTIPLICATION SIGN}1,200"


def test_every_output_is_there_without_a_script():
    tree = section(browser=BROWSER).one("noscript")
    assert [fold.one("summary").text for fold in tree.all("details")] == [
        table.label for table in BROWSER
    ]
    texts = [o.text for table in BROWSER for o in table.outputs]
    assert [output.all("dd")[0].text for output in tree.all("dl")] == texts
    assert [len(output.all("dt")) for output in tree.all("dl")] == [4, 3, 3, 3]  # notes if any


def test_every_template_can_be_chosen():
    tree = section(browser=BROWSER).one("fieldset")
    radios = tree.all("input", type="radio")
    assert [radio.attributes["value"] for radio in radios] == ["0", "1", "2"]
    assert tree.all("label")[0].text.split() == ["1", "3", "7×2", "12×2", "0"]  # noqa: RUF001
