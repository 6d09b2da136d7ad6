"""Contrast as WCAG 2 defines it."""

from __future__ import annotations

Rgb = tuple[int, int, int]


def contrast(first: Rgb, second: Rgb) -> float:
    """Ratio of the luminances, 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Rgb) -> float:
    red, green, blue = (_linear(channel / 255) for channel in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
