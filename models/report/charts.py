"""Training curves as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from models.report.axes import Axis, finite_pieces, thinned
from models.report.content import Chart, Curve
from models.report.markup import Html, element, joined
from models.report.numbers import decimal

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 408, 12, 212  # of the area of the curves
BUCKETS = 175  # one for two units of width
COLOURS, DASHES = 8, ("", "7 3", "2 3")  # the style sheet has the colours


def chart_figures(charts: Sequence[Chart]) -> Html:
    """All charts; a run looks the same in each."""
    runs = dict.fromkeys(curve.run for chart in charts for curve in chart.curves)
    looks = {run: index for index, run in enumerate(runs)}
    return joined(_figure(chart, f"chart-{i}", looks) for i, chart in enumerate(charts))


def _figure(chart: Chart, name: str, looks: Mapping[str, int]) -> Html:
    return element(
        "figure",
        element("h3", chart.title),
        element("p", chart.meaning, class_="meaning"),
        _drawing(chart, name, looks),
        element("ul", *(_legend(curve, looks[curve.run]) for curve in chart.curves)),
        class_="chart",
    )


def _drawing(chart: Chart, name: str, looks: Mapping[str, int]) -> Html:
    described = " ".join(_in_words(curve) for curve in chart.curves)
    return element(
        "svg",
        element("title", chart.title, id=f"{name}-title"),
        element("desc", described, id=f"{name}-desc"),
        _plot(chart.curves, looks),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-desc",
    )


def _plot(curves: Sequence[Curve], looks: Mapping[str, int]) -> Html:
    pieces = [(looks[c.run], piece) for c in curves for piece in finite_pieces(c.points)]
    points = [point for _, piece in pieces for point in piece]
    if not points:
        middle = {"x": (LEFT + RIGHT) // 2, "y": (TOP + BOTTOM) // 2}
        return element("text", "no finite values", text_anchor="middle", **middle)
    across = Axis.over([float(step) for step, _ in points], LEFT, RIGHT)
    upward = Axis.over([value for _, value in points], BOTTOM, TOP).rounded()
    lines = [_line(piece, look, across, upward) for look, piece in pieces]
    return joined([_upward_axis(upward), _across_axis(across), *lines])


def _line(piece: Sequence[tuple[int, float]], look: int, across: Axis, upward: Axis) -> Html:
    """A line; a point on its own is a dot."""
    places = [(across.place(step), upward.place(y)) for step, y in thinned(piece, BUCKETS)]
    if len(places) == 1:
        [(x, y)] = places
        return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, class_=f"dot {_colour(look)}")
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return element("polyline", points=path, **_stroke(look))


def _upward_axis(axis: Axis) -> Html:
    parts: list[Html] = []
    for value, label in axis.ticks():
        y = f"{axis.place(value):.1f}"
        parts.append(element("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(element("text", label, x=LEFT - 8, y=y, dy="0.35em", text_anchor="end"))
    return joined(parts)


def _across_axis(axis: Axis) -> Html:
    parts = [element("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, class_="axis")]
    for value, label in axis.ticks():
        x = f"{axis.place(value):.1f}"
        parts.append(element("line", x1=x, x2=x, y1=BOTTOM, y2=BOTTOM + 5, class_="axis"))
        parts.append(element("text", label, x=x, y=BOTTOM + 21, text_anchor="middle"))
    name = element("text", "step", x=(LEFT + RIGHT) // 2, y=HEIGHT - 6, text_anchor="middle")
    return joined([*parts, name])


def _legend(curve: Curve, look: int) -> Html:
    swatch = element(
        "svg",
        element("line", x1=0, x2=28, y1=6, y2=6, **_stroke(look)),
        viewBox="0 0 28 12",
        class_="swatch",
        aria_hidden="true",
    )
    return element("li", swatch, element("span", curve.run), element("b", _last(curve)))


def _last(curve: Curve) -> str:
    """The last value, and how many are no finite numbers."""
    if not curve.points:
        return "no values"
    last = decimal(max(curve.points, key=lambda point: point[0])[1])
    lost = sum(not math.isfinite(value) for _, value in curve.points)
    return f"{last} ({lost} of {len(curve.points)} not finite)" if lost else last


def _in_words(curve: Curve) -> str:
    """What the line shows, for who cannot see it."""
    finite = [point for piece in finite_pieces(curve.points) for point in piece]
    if not finite:
        return f"{curve.run}: no finite values."
    (first, start), (last, end) = finite[0], finite[-1]
    values = [value for _, value in finite]
    return (
        f"{curve.run}: from {decimal(start)} at step {first:,} to {decimal(end)} at step {last:,}, "
        f"lowest {decimal(min(values))}, highest {decimal(max(values))}."
    )


def _stroke(look: int) -> dict[str, str | None]:
    dash = DASHES[look % len(DASHES)]
    return {"class_": f"curve {_colour(look)}", "stroke_dasharray": dash or None}


def _colour(look: int) -> str:
    return f"c{look % COLOURS}"
