"""Numbers that change while a model trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from models.errors import SettingError


@dataclass(frozen=True)
class Schedule:
    """A number that goes from `start` to `end` within `epochs`, constant before and after.

    Args:
        start: Value at the first step.
        end: Value after `epochs`; the same as `start` if not given.
        epochs: How long the way takes; a fraction of an epoch will do.
        after: Epochs to wait at `start` first.
        shape: Equal differences (`linear`) or equal ratios (`geometric`) in equal times.
    """

    start: float
    end: float | None = None
    epochs: float = 0.0
    after: float = 0.0
    shape: Literal["linear", "geometric"] = "linear"

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.after < 0:
            raise SettingError(f"a schedule cannot take {min(self.epochs, self.after)} epochs")
        if len({*self.ends}) > 1 and not (self.epochs or self.after):
            raise SettingError("a schedule with an end needs epochs, or after, to get there")
        if self.shape == "geometric" and min(self.ends) <= 0:
            raise SettingError("a geometric schedule needs a positive start and end")

    @property
    def ends(self) -> tuple[float, float]:
        """Its first value and its last."""
        return self.start, self.start if self.end is None else self.end

    def at(self, epoch: float) -> float:
        """The value after so many epochs, fractions counted."""
        start, end = self.ends
        if epoch < self.after:
            return start
        way = min((epoch - self.after) / self.epochs, 1.0) if self.epochs else 1.0
        if self.shape == "geometric":
            return float(start * (end / start) ** way)
        return start + way * (end - start)
