"""`python -m models score`."""

from __future__ import annotations

from typing import Any

from jsonargparse import ArgumentParser

DESCRIPTION = """Score generated texts against references."""


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(options: Any) -> None:
    raise NotImplementedError
