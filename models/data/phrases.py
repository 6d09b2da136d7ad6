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
    lines = []
    for line in text.splitlines():
        if name := FRAGMENT.search(line):
            before, after = line[: name.start()], line[name.end() :]
            pieces = fragments[name[1]].splitlines()
            lines += lines_of("\n".join(before + piece + after for piece in pieces), fragments)
        else:
            lines.append(line)
    return lines
