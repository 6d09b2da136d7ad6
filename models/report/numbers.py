"""Numbers as a reader wants them."""

from __future__ import annotations

import math

from models.report.content import Cell

MISSING = "\N{EN DASH}"
MINUS, INFINITY, TIMES = "\N{MINUS SIGN}", "\N{INFINITY}", "\N{MULTIPLICATION SIGN}"


def cell_text(value: Cell) -> str:
    if value is None:
        return MISSING
    if isinstance(value, float):
        return decimal(value)
    return f"{value:,}" if isinstance(value, int) else value


def decimal(value: float) -> str:
    """Three decimals; three digits of what is too large or too small for that."""
    if not math.isfinite(value):
        return _not_finite(value)
    plain = value == 0 or 0.001 <= abs(value) < 1e6
    return f"{value:,.3f}" if plain else f"{value:.3g}"


def times(count: int, smallest: int = 1) -> str:
    """How often; nothing below `smallest`."""
    return f"{TIMES}{count:,}" if count >= smallest else ""


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "not a number"
    return INFINITY if value > 0 else MINUS + INFINITY
