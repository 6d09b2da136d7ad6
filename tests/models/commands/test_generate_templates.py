"""`python -m models generate` with templates: given, stored, described, or several."""

from __future__ import annotations

import pytest

from tests.models.commands.generating import BAD, TABLES, records

pytest_plugins = ["tests.models.commands.generating_fixtures"]


def test_keep_going_stays_in_step_with_templates(refused):
    printed, _ = refused([BAD, TABLES[0]], "--keep-going", "--num-templates", 2)
    assert printed[:2] == ["", ""]
    assert len(printed) == 4


def test_states_as_template(generate):
    found = records(generate(TABLES, "--json", "--template", "2 0 0 1"))
    assert [record["states"] for record in found] == [[2, 0, 0, 1]] * 3
    assert [record["fitness"] for record in found] == [None] * 3  # none competed


def test_a_stored_template(generate):
    (asked,) = records(generate(TABLES[:1], "--json", "--template", "@2"))
    assert asked["template"] == 2
    states = " ".join(map(str, asked["states"]))
    (same,) = records(generate(TABLES[:1], "--json", "--template", states))
    assert same["words"] == asked["words"]


def test_a_pattern(generate):
    (stored,) = records(generate(TABLES[:1], "--json", "--template", "@0"))
    first = stored["states"][0]
    for record in records(generate(TABLES, "--json", "--template", f"{first} *")):
        assert record["states"][0] == first
        assert record["template"] is not None


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("0 7", "no state 7"),
        ("@999", "no template @999"),
        ("0 x *", "'x'"),
        ("", "empty"),
        ("0 1 0 1 0 1 2 2 ? 1 2 0 2 0 1 0 1 0 2 1 2", "no stored template"),
    ],
)
def test_templates_that_cannot_be_followed(refused, template, message):
    printed, complaints = refused(TABLES, "--template", template)
    assert printed == []
    assert message in complaints


@pytest.mark.parametrize("number", [1, 3])
def test_so_many_templates(generate, number):
    found = records(generate(TABLES, "--json", "--num-templates", number))
    assert [record["input"] for record in found] == sorted([1, 2, 3] * number)
    for line in (1, 2, 3):
        assert len({r["template"] for r in found if r["input"] == line}) == number
    for fitness in (record["fitness"] for record in found):
        assert fitness["table_log_prob"] <= 0 <= fitness["misread"]


def test_more_templates_than_there_are(refused):
    printed, complaints = refused(TABLES, "--num-templates", 1000)
    assert printed == []
    assert "standard input, line 1: stored templates that fit" in complaints


def test_a_model_without_templates(generate, refused):
    assert len(generate(TABLES, name="rnnlm")) == len(TABLES)
    assert records(generate(TABLES, "--json", name="rnnlm"))[0]["states"] == []
    for options in (["--template", "0 1"], ["--template", "@0"], ["--num-templates", 2]):
        assert "without templates" in refused(TABLES, *options, name="rnnlm")[1]
