"""A colour for each state, as in the terminal, readable by day and by night."""

from __future__ import annotations

from collections.abc import Iterable
from colorsys import hls_to_rgb

GOLDEN_ANGLE = 137.508  # degrees: hues of neighbouring states are far apart
CONTRAST = 4.5  # of WCAG 2, level AA, for text of normal size
STEP = 0.01

Rgb = tuple[int, int, int]


def wash(state: int, dark: bool) -> Rgb:
    """What is behind the words of a state."""
    return rgb(state, 0.17, 0.45) if dark else rgb(state, 0.93, 0.75)


def ink(state: int, dark: bool) -> Rgb:
    """The state's words: the terminal's hue, as light or dark as its wash demands."""
    behind, lightness = wash(state, dark), 0.6
    while contrast(rgb(state, lightness, 0.75), behind) < CONTRAST:
        lightness += STEP if dark else -STEP
    return rgb(state, lightness, 0.75)


def contrast(first: Rgb, second: Rgb) -> float:
    """Ratio of the luminances as WCAG 2 defines it, 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def state_css(states: Iterable[int]) -> str:
    """Rules that give the class `s7` the colours of state 7."""
    known = sorted(set(states))
    night = "".join(_rule(state, dark=True) for state in known)
    day = "".join(_rule(state, dark=False) for state in known)
    return f"{day}@media (prefers-color-scheme:dark){{{night}}}"


def _rule(state: int, dark: bool) -> str:
    return f".s{state}{{--ink:{_hex(ink(state, dark))};--wash:{_hex(wash(state, dark))}}}"


def rgb(state: int, lightness: float, saturation: float) -> Rgb:
    red, green, blue = hls_to_rgb(state * GOLDEN_ANGLE / 360 % 1, lightness, saturation)
    return round(255 * red), round(255 * green), round(255 * blue)


def _hex(colour: Rgb) -> str:
    return "#" + "".join(f"{channel:02x}" for channel in colour)


def _luminance(colour: Rgb) -> float:
    red, green, blue = (_linear(channel / 255) for channel in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
