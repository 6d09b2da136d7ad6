"""Elements, escaped by construction."""

from __future__ import annotations

import json

import pytest

from models.report.markup import Html, as_json, element, joined


def test_text_is_escaped_and_markup_is_not():
    assert element("p", "a<b", Html("<i>c</i>")) == "<p>a&lt;b<i>c</i></p>"
    assert joined(["&", element("i")], " ") == "&amp; <i></i>"


def test_attributes():
    made = element(
        "input", class_='a"b', aria_label="<x>", value=0, hidden=True, id=None, for_=False
    )
    assert made == '<input class="a&quot;b" aria-label="&lt;x&gt;" value="0" hidden>'


def test_json_is_the_same_data():
    data = {"a": ["</script>", "<!--", "&amp;", "\u2028", 'quote"']}
    text = as_json(data)
    assert json.loads(text) == data
    assert not set("<>&\u2028") & set(text)


def test_json_has_no_name_for_nan():
    with pytest.raises(ValueError, match="JSON"):
        as_json([float("nan")])
