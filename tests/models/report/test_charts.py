"""Curves as drawings."""

from __future__ import annotations

import math

import pytest

from models.report.charts import BOTTOM, LEFT, RIGHT, TOP
from models.report.content import Chart, Curve, Report
from models.report.page import render
from tests.models.report.document import Node, parse

LINE = Curve("first", ((0, 1.0), (50, 2.0), (100, 5.0)))


def figures(*charts: Chart) -> list[Node]:
    return parse(render(Report("charts", charts=charts))).all("figure")


def drawn(*curves: Curve) -> Node:
    [figure] = figures(Chart("Loss", "What it is.", curves))
    return figure


def places(line: Node) -> list[tuple[float, ...]]:
    points = (line.attributes["points"] or "").split()
    return [tuple(map(float, point.split(","))) for point in points]


def test_line_goes_through_its_points():
    [line] = drawn(LINE).all("polyline")
    middle = (LEFT + RIGHT) / 2, BOTTOM + (TOP - BOTTOM) / 4  # a quarter between 1 and 5
    assert places(line) == [(LEFT, BOTTOM), pytest.approx(middle), (RIGHT, TOP)]


def test_runs_share_the_axes_and_look_different():
    lines = drawn(LINE, Curve("second", ((0, 3.0), (100, 3.0)))).all("polyline")
    assert places(lines[1]) == [(LEFT, 112.0), (RIGHT, 112.0)]
    assert lines[0].attributes["class"] != lines[1].attributes["class"]
    assert lines[0].attributes.get("stroke-dasharray") != lines[1].attributes["stroke-dasharray"]


def test_a_run_looks_the_same_in_each_chart():
    other = Curve("second", LINE.points)
    charts = [Chart("a", "", (LINE, other)), Chart("b", "", (other,))]
    first, second = figures(*charts)
    assert first.all("polyline")[1].attributes == second.one("polyline").attributes


def test_gaps_and_dots():
    broken = Curve("r", ((0, 3.0), (20, math.nan), (40, 2.5), (60, 2.0), (80, -math.inf)))
    figure = drawn(broken)
    assert len(figure.all("polyline")) == len(figure.all("circle")) == 1
    assert "(2 of 5 not finite)" in figure.one("li").text


@pytest.mark.parametrize("points", [(), ((0, math.nan),), ((0, math.inf), (1, -math.inf))])
def test_nothing_to_draw(points):
    figure = drawn(Curve("r", points))
    assert "no finite values" in figure.all("svg")[0].text
    assert not figure.all("polyline") + figure.all("circle")


def test_one_point():
    dot = drawn(Curve("r", ((100, 7.25),))).one("circle")
    assert float(dot.attributes["cx"]) == (LEFT + RIGHT) / 2
    assert TOP < float(dot.attributes["cy"]) < BOTTOM


def test_it_can_be_heard():
    drawing = drawn(LINE).all("svg")[0]
    assert drawing.attributes["role"] == "img"
    assert drawing.one("title", id=drawing.attributes["aria-labelledby"]).text == "Loss"
    assert drawing.one("desc", id=drawing.attributes["aria-describedby"]).text == (
        "first: from 1.000 at step 0 to 5.000 at step 100, lowest 1.000, highest 5.000."
    )


def test_legend_has_the_last_value():
    assert drawn(LINE).one("li").text == "first5.000"
    assert drawn(Curve("late", ((9, 1.0), (3, 2.0)))).one("li").one("b").text == "1.000"


def test_no_number_of_the_drawing_is_broken():
    drawing = drawn(LINE, Curve("x", ((3, math.inf), (5, 1e30)))).all("svg")[0]
    numbers = [
        v for line in drawing.all("line") for k, v in line.attributes.items() if k != "class"
    ]
    assert numbers
    assert all(math.isfinite(float(number or "nan")) for number in numbers)
