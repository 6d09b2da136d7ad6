"""The page in a real browser: quiet, alone, by keyboard, on a phone, by day and by night."""

from __future__ import annotations

import json
import re

import pytest

from models.report.content import Output, Report, TableChoice, coloured
from models.report.page import render
from models.templates.analysis import StateNGram
from tests.models.report.chromium import chromium, prefer, resize
from tests.models.report.example import BROWSER, EVERYTHING, HOSTILE, NGRAMS
from tests.models.report.wcag import contrast

TAB, DOWN, BACKSPACE = "\ue004", "\ue015", "\ue003"
STOPS = "a[href], button, select, summary, input[type=text], input:checked, [tabindex='0']"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(EVERYTHING), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(driver, address):
    """Loaded anew, on a large light screen."""
    resize(driver, 1200, 900)
    prefer(driver, "light")
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(address)
    return driver


def find(page, selector):
    return page.find_element("css selector", selector)


def result(page) -> str:
    return find(page, "#browser-result").text


def press(page, *keys):
    """Wherever the focus is."""
    page.switch_to.active_element.send_keys(*keys)


def focus(page, selector):
    page.execute_script("document.querySelector(arguments[0]).focus()", selector)


def rows(page) -> list[str]:
    shown = page.find_elements("css selector", "#ngram-browser tbody tr:not([hidden])")
    return [row.get_attribute("data-states") for row in shown]


def test_no_word_in_the_console(page):
    focus(page, "#browser-table")
    press(page, DOWN)
    assert page.get_log("browser") == []


def test_no_request_but_for_the_page(page, address):
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    requests = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert {request["request"]["url"] for request in requests} <= {address, "data:,"}
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_first_table_and_template_are_shown(page):
    first = BROWSER[0].outputs[0]
    assert first.text in result(page)
    assert first.note in result(page)
    assert "The 3 Vaults is 7" in result(page)


def test_table_and_template_by_keyboard(page):
    first, second = BROWSER[:2]
    focus(page, "#browser-table")
    press(page, TAB)
    press(page, DOWN)
    assert first.outputs[1].text in result(page)
    focus(page, "#browser-table")
    press(page, DOWN)
    assert second.outputs[0].text in result(page)  # the same template
    assert find(page, "#browser-label").text == second.label
    press(page, TAB)
    press(page, DOWN)
    assert second.outputs[1].text in result(page)  # over the one that is not offered


def test_a_template_that_the_table_has_not_is_left(page):
    focus(page, "#browser-table")
    press(page, DOWN)
    assert BROWSER[1].outputs[0].text in result(page)
    assert not find(page, "input[value='0']").is_enabled()
    press(page, DOWN)
    assert result(page) == "There is no sentence for this table."


def test_result_is_announced(page):
    assert find(page, "#browser-result").get_attribute("aria-live") == "polite"


def test_ngrams_by_typing(page):
    assert len(rows(page)) == len(NGRAMS)
    focus(page, "#ngram-states")
    press(page, "7")
    assert rows(page) == ["3 7", "7 12 5"]  # and not 37
    press(page, ", 12")
    assert rows(page) == ["7 12 5"]
    assert find(page, "#ngram-status").text == "1 of 3 n-grams"
    press(page, *BACKSPACE * 5)
    assert len(rows(page)) == len(NGRAMS)


@pytest.mark.parametrize("place", [".buttons [data-state='3']", "tbody [data-state='3']"])
def test_ngrams_by_clicking(page, place):
    find(page, f"#ngram-browser {place}").click()
    assert rows(page) == ["3 7"]
    assert find(page, ".buttons [data-state='3']").get_attribute("aria-pressed") == "true"
    find(page, f"#ngram-browser {place}").click()
    assert len(rows(page)) == len(NGRAMS)


def test_hostile_words_are_seen_as_text(page):
    focus(page, "#browser-table")
    press(page, DOWN)
    press(page, TAB)
    press(page, DOWN)
    for selector in ("h1", "#facts", "#sentences", "#browser-result", "#ngrams", "#states"):
        assert HOSTILE in find(page, selector).text
    assert page.find_elements("css selector", "[onclick]") == []


SCRIPTS = (
    "<script>document.title = 'obeyed'</script>",
    "<img src=x onerror=\"document.title = 'obeyed'\">",
    "<svg/onload=document.title='obeyed'>",
    "</title></script></noscript><iframe srcdoc=\"<script>parent.document.title='obeyed'</script>",
    "{{ 7 * 7 }} ${7 * 7} javascript:document.title='obeyed'",
    "name[a[b]], \U0001f469\u200d\U0001f467 \u2028 ]]> --> &lt;b&gt;",
)


@pytest.mark.parametrize("text", SCRIPTS)
def test_scripts_are_seen_as_text(driver, text, tmp_path):
    """Wherever a value of a table or a word can stand, in the page and in what its script shows."""
    many = ", ".join(f"key {i}[{text}]" for i in range(3))
    browser = (TableChoice(many, (Output((1,), text, [(1, text)], text),)),)
    words = coloured((text,), (1,))
    (tmp_path / "page.html").write_text(
        render(Report("title", (("fact", text),), sentences=(words,), browser=browser))
    )
    driver.get((tmp_path / "page.html").as_uri())
    assert driver.title == "title"
    for selector in ("#facts", "#sentences", "#browser-label", "#browser-result"):
        assert text in find(driver, selector).get_property("textContent")
    assert driver.find_elements("css selector", "iframe, img, b i, svg:not(.swatch)") == []


def test_ten_thousand_keys_are_seen(driver, tmp_path):
    label = ", ".join(f"key {i}[]" for i in range(10_000))
    browser = (TableChoice(label, (Output((1,), "", [], ""),)),)
    (tmp_path / "page.html").write_text(render(Report("title", browser=browser)))
    driver.get((tmp_path / "page.html").as_uri())
    assert find(driver, "#browser-label").get_property("textContent") == label
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 1200


@pytest.mark.parametrize("mark", ["\u202e", "\u2067", "\u202b", "שלום"])
def test_right_to_left_marks_turn_nothing_but_their_words(driver, mark, tmp_path):
    """Words after them stand after them, and numbers read as they should."""
    words = coloured((f"{mark}abc", "def", "ghi"), (12, 34, 56))
    ngrams = (StateNGram((12, 34), 123, ((f"{mark}abc", 45),)),)
    (tmp_path / "page.html").write_text(render(Report("title", sentences=(words,), ngrams=ngrams)))
    driver.get((tmp_path / "page.html").as_uri())
    runs = driver.find_elements("css selector", "#sentences .run")
    assert [run.rect["x"] for run in runs] == sorted(run.rect["x"] for run in runs)
    for small in driver.find_elements("css selector", "#sentences small, #ngrams small"):
        text, places = driver.execute_script(PLACES, small)
        assert len(text) > 1
        assert places == sorted(places)


PLACES = """
const text = arguments[0].firstChild, range = document.createRange();
return [text.data, [...text.data].map((_, i) => {
  range.setStart(text, i);
  range.setEnd(text, i + 1);
  return range.getBoundingClientRect().x;
})];
"""


def test_curves_are_drawn(page):
    heights = page.execute_script(
        "return [...document.querySelectorAll('.curve, .dot, .axis')]"
        ".map(e => e.getBoundingClientRect()).map(r => r.width + r.height)"
    )
    assert len(heights) > 20
    assert min(heights) > 1


@pytest.mark.parametrize("width", [320, 360, 768, 1200])
def test_page_does_not_scroll_sideways(page, width):
    resize(page, width, 640)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_fingers_find_their_targets(page):
    resize(page, 360, 640)
    found = page.find_elements(
        "css selector", "nav a, button, select, #ngram-states, .radios label"
    )
    sizes = [element.size for element in found]
    assert min(min(size["width"], size["height"]) for size in sizes) >= 44


def test_tab_reaches_everything_and_shows_where_it_is(page):
    expected = page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility())",
        STOPS,
    )
    reached = []
    for _ in expected:
        press(page, TAB)
        reached.append(page.switch_to.active_element)
        assert reached[-1].value_of_css_property("outline").endswith("solid 3px")
        assert reached[-1].accessible_name
    assert reached == expected


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(page, scheme):
    """Of all text on a plain background: its own, or that of the nearest element with one."""
    prefer(page, scheme)
    pairs = page.execute_script(COLOURS_OF_TEXT)
    assert len(pairs) > 10
    assert min(contrast(rgb(front), rgb(back)) for front, back in pairs) >= 4.5


def test_night_is_dark(page):
    prefer(page, "dark")
    assert sum(rgb(find(page, "body").value_of_css_property("background-color"))) < 150


def test_without_scripts_everything_can_be_read(page):
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.refresh()
        folds = page.find_elements("css selector", "summary")
        assert [fold.text for fold in folds] == [table.label for table in BROWSER]
        folds[0].click()
        assert BROWSER[0].outputs[0].text in find(page, "#templates").text
        assert not find(page, "#template-browser").is_displayed()
        assert not find(page, "#ngram-browser .controls").is_displayed()
    finally:
        page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


COLOURS_OF_TEXT = """
const pairs = new Map();
const clear = (e) => getComputedStyle(e).backgroundColor === "rgba(0, 0, 0, 0)";
for (const element of document.querySelectorAll("body *:not(svg, svg *, script, noscript)")) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !element.checkVisibility() || element.closest("label:has(:disabled)")) continue;
  let behind = element;
  while (clear(behind)) behind = behind.parentElement;
  const pair = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
  pairs.set(pair.join(), pair);
}
return [...pairs.values()];
"""


def rgb(css: str) -> tuple[int, int, int]:
    red, green, blue = map(int, re.findall(r"\d+", css)[:3])
    return red, green, blue
