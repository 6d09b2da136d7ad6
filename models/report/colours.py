"""A colour for each state, as in the terminal, readable by day and by night."""

from __future__ import annotations

from collections.abc import Iterable
from colorsys import hls_to_rgb

GOLDEN_ANGLE = 137.508  # degrees: hues of neighbouring states are far apart
# Lightness and saturation of words and of what is behind them, by day and by night. In any hue the
# contrast is at least the 4.5 that WCAG 2, level AA, asks of text.
DAY, NIGHT = {"ink": (0.26, 0.75), "wash": (0.93, 0.75)}, {"ink": (0.7, 0.75), "wash": (0.17, 0.45)}


def rgb(state: int, lightness: float, saturation: float) -> tuple[int, int, int]:
    red, green, blue = hls_to_rgb(state * GOLDEN_ANGLE / 360 % 1, lightness, saturation)
    return round(255 * red), round(255 * green), round(255 * blue)


def state_css(states: Iterable[int]) -> str:
    """Rules that give the class `s7` the colours of state 7."""
    shown = sorted({*states})
    day, night = ("".join(_rule(state, look) for state in shown) for look in (DAY, NIGHT))
    return f"{day}@media (prefers-color-scheme:dark){{{night}}}"


def _rule(state: int, look: dict[str, tuple[float, float]]) -> str:
    ink, wash = (bytes(rgb(state, *look[name])).hex() for name in ("ink", "wash"))
    return f".s{state}{{--ink:#{ink};--wash:#{wash}}}"
