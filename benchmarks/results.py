"""The result of one command: plain rows, to and from JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
Record = dict[str, Any]


class ResultsError(ValueError):
    """A file that is not the result of a benchmark."""


@dataclass(frozen=True)
class Results:
    command: str  # samplers, gradients, ...
    environment: Record
    settings: Record
    rows: list[Record]
    summary: list[Record] = field(default_factory=list)  # what was derived from the rows
    schema: int = SCHEMA

    @property
    def busy(self) -> int:
        """How many busy neighbours there were all the while."""
        return int(self.settings.get("busy", 0))

    @property
    def name(self) -> str:
        """Of the command and, if these are not linear chains, of the structure."""
        return "-".join(filter(None, [self.command, self.environment.get("structure")]))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, allow_nan=False) + "\n")


def load(path: Path) -> Results:
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise ResultsError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ResultsError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise ResultsError(f"{path} does not hold results of these benchmarks (schema {SCHEMA})")
    try:
        results = Results(**content)
    except TypeError as error:
        raise ResultsError(f"{path} does not hold whole results: {error}") from None
    if not (isinstance(results.rows, list) and isinstance(results.environment, dict)):
        raise ResultsError(f"{path} does not hold whole results")
    return results


def value_at(row: Record, field_path: str) -> Any:
    """`value_at(row, "forward.median")`; None where something on the way is missing."""
    value: Any = row
    for name in field_path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
