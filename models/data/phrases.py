"""Phrases in a YAML file: one a line, put together from named fragments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

FRAGMENT = re.compile("<([a-z ]+)>")


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def lines_of(text: str, fragments: Mapping[str, str]) -> list[str]:
    """The lines of the text; one that names a fragment comes once for each line of that."""
    return [whole for line in text.splitlines() for whole in _expanded(line, fragments)]


def _expanded(line: str, fragments: Mapping[str, str]) -> list[str]:
    name = FRAGMENT.search(line)
    if name is None:
        return [line]
    before, after = line[: name.start()], line[name.end() :]
    pieces = fragments[name[1]].splitlines()
    return lines_of("\n".join(before + piece + after for piece in pieces), fragments)
