"""Numbers as a reader wants them."""

from __future__ import annotations

import math

MINUS, INFINITY = "\N{MINUS SIGN}", "\N{INFINITY}"


def cell_text(value: str | float | int) -> str:
    if isinstance(value, float):
        return decimal(value)
    return f"{value:,}" if isinstance(value, int) else value


def decimal(value: float) -> str:
    """Three decimals; three digits of what is too large or too small for that."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return INFINITY if value > 0 else MINUS + INFINITY
    plain = value == 0 or 0.001 <= abs(value) < 1e6
    return f"{value:,.3f}" if plain else f"{value:.3g}"
