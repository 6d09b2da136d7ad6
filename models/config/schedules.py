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
        if self._end != self.start and not (self.epochs or self.after):
            raise SettingError("a schedule with an end needs epochs, or after, to get there")
        if self.shape == "geometric" and (self.start <= 0 or self._end <= 0):
            raise SettingError("a geometric schedule needs a positive start and end")

    @property
    def _end(self) -> float:
        return self.start if self.end is None else self.end

    @property
    def smallest(self) -> float:
        return min(self.start, self._end)

    @property
    def largest(self) -> float:
        return max(self.start, self._end)

    def at(self, epoch: float) -> float:
        """The value after so many epochs, fractions counted."""
        if epoch < self.after:
            return self.start
        way = min((epoch - self.after) / self.epochs, 1.0) if self.epochs else 1.0
        if self.shape == "geometric":
            return float(self.start * (self._end / self.start) ** way)
        return self.start + way * (self._end - self.start)
