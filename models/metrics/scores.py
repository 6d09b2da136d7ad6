"""Scores with the settings they were computed with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any


@dataclass(frozen=True)
class Score:
    name: str
    value: float | None  # None if it could not be computed
    settings: Mapping[str, Any] = field(default_factory=dict)
    unavailable: str | None = None  # why there is no value

    def as_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"value": self.value, "settings": dict(self.settings)}
        return entry if self.unavailable is None else entry | {"unavailable": self.unavailable}


@dataclass(frozen=True)
class SystemScores:
    protocol: str
    instances: int
    references: int  # of all instances
    scores: Sequence[Score]

    def __getitem__(self, name: str) -> Score:
        return next(score for score in self.scores if score.name == name)

    def as_json(self) -> dict[str, Any]:
        return vars(self) | {"scores": {score.name: score.as_json() for score in self.scores}}


def library(name: str) -> str:
    """Name and version of an installed package."""
    return f"{name} {version(name)}"
