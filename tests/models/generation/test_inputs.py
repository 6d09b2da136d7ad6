"""Every line of input is answered, by what it holds or by what is wrong with it."""

from __future__ import annotations

import json

import pytest

from models.errors import DataError
from models.generation.inputs import read_lines, sentence_of, table_of

VAULTS = (("name", "The Vaults"), ("eatType", "pub"))
NOTATION = "name[The Vaults], eatType[pub]"
JSON = '{"name": "The Vaults", "eatType": "pub"}'

MALFORMED = {
    "": "an empty line",
    " \r\n": "an empty line",
    "The Vaults": "text outside brackets: 'The Vaults'",
    "name[a], name[b]": "'name' is there twice",
    "[1, 2]": "no key before [1, 2]",
    "{}": "an empty object",
    '{"a": "b"': "not JSON: Expecting ',' delimiter at character 10",
    '{"a": "b"} x': "not JSON: Extra data at character 12",
    '{"a": NaN}': "not JSON: NaN",
    '{"a": {"b": "c"}}': "the value of 'a' is neither text, number, true nor false",
    '{"a": ["b"]}': "the value of 'a' is neither",
    '{"a": null}': "the value of 'a' is neither",
    '{"a": ' + 100_000 * "[": "values within values",
    '{"a": "b", " a": "c"}': "'a' is there twice",
    '{" ": "b"}': "an empty key",
    '{"a": " "}': "no value for 'a'",
    '{"a": "b\\nc"}': "a line break in the value of 'a'",
    '{"a": "\\ud800"}': "not UTF-8 text",
    "name[\udce9]": "not UTF-8 text",
    "name[\x1b[2J]": "a control character, '\\x1b'",
    '{"a": "\\u001b]0;title\\u0007"}': "a control character, '\\x1b'",
    f"name[{'a' * 200_000}]": "more than 131,072 characters",
}


@pytest.mark.parametrize("line", [NOTATION, JSON, f" {JSON} \r\n", f"{NOTATION}\n"])
def test_tables(line):
    assert list(read_lines([line, line], "-", table_of)) == [VAULTS, VAULTS]


@pytest.mark.parametrize("value", ["👩\u200d👧", "\u202eabc", "שלום", "<b>&amp;", "\u200f", "a\tb"])
def test_values_are_text_whatever_they_are(value):
    for line in (f"name[{value}]", json.dumps({"name": value})):
        assert list(read_lines([line], "-", table_of)) == [(("name", value),)]


def test_json_values_are_text():
    line = '{"a": 20.00, "b": -3, "c": true, "d": false, "e": " [x], y ", "f": "caf\\u00e9"}'
    expected = (("a", "20.00"), ("b", "-3"), ("c", "yes"), ("d", "no"), ("e", "[x], y"))
    assert list(read_lines([line], "-", table_of)) == [(*expected, ("f", "café"))]


@pytest.mark.parametrize(("line", "message"), MALFORMED.items(), ids=range(len(MALFORMED)))
def test_malformed_tables_are_named_in_place(line, message):
    first, error, last = read_lines([JSON, line, JSON], "in.txt", table_of)
    assert first == last == VAULTS
    assert isinstance(error, DataError)
    assert str(error).startswith(f"in.txt, line 2: {message}")


def test_a_byte_order_mark_counts_only_at_the_start():
    for line in (NOTATION, JSON):
        assert list(read_lines([f"\ufeff{line}"], "-", table_of)) == [VAULTS]
    assert isinstance(next(read_lines(["\ufeff"], "-", table_of)), DataError)
    assert next(read_lines(["\ufeffA dog."], "-", sentence_of)) == "A dog."


def test_lines_are_read_as_they_are_asked_for():
    lines = iter([NOTATION, JSON])
    assert next(read_lines(lines, "-", table_of)) == VAULTS
    assert next(lines) == JSON


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("A dog  runs.\r\n", "A dog runs."),
        ('"A \\"big\\"\\ndog"', 'A "big" dog'),
        ('"Sit", he says.', '"Sit", he says.'),
        ("12", "12"),
        ("null", "null"),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=range(6),
)
def test_sentences(line, sentence):
    assert list(read_lines([line], "-", sentence_of)) == [sentence]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("\n", "an empty line"),
        ('""', "an empty sentence"),
        ('" \\n"', "an empty sentence"),
        ('"\\udce9"', "not UTF-8 text"),
    ],
)
def test_malformed_sentences_are_named_in_place(line, message):
    first, error, last = read_lines(["A dog.", line, "A cat."], "in.txt", sentence_of)
    assert (first, last) == ("A dog.", "A cat.")
    assert isinstance(error, DataError)
    assert str(error) == f"in.txt, line 2: {message}"
